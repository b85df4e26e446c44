// Package policy_test rolls rules out on a real API server: RayPolicies, the
// background audit, and failing closed. All tests share one lab, one after the
// other; each works in a namespace of its own.
package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

var shared *rig.Rig

func TestMain(m *testing.M) {
	code := 1
	if err := withRig(func() { code = m.Run() }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withRig(tests func()) (err error) {
	binary, err := rig.Binary()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-policy-")
	if err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(context.Background(), lab.Options{Dir: dir, AdmissionOnly: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	definition, err := exec.Command(binary, "crd").Output()
	if err != nil {
		return fmt.Errorf("rayfit crd: %w", err)
	}
	if _, _, err := l.Apply(string(definition)); err != nil {
		return err
	}
	if _, _, err := l.Kubectl("create", "namespace", "rayfit-system"); err != nil {
		return err
	}
	shared, err = rig.Start(context.Background(), l, "--no-controller", "--kubeconfig="+l.Kubeconfig())
	if err != nil {
		return err
	}
	tests()
	return nil
}

// policy applies a RayPolicy and takes it away with the test.
func policy(t *testing.T, name, spec string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: rayfit.dev/v1alpha1\nkind: RayPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
	if _, _, err := shared.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, "delete", "rayp", name, "--ignore-not-found") })
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _, err := shared.Lab.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := lab.Eventually(t.Context(), 30*time.Second, what, condition); err != nil {
		t.Fatal(err)
	}
}

// faulty is a RayCluster that breaks RF201, which denies by itself.
func faulty(namespace, name string) rig.Object {
	return rig.RayCluster(namespace, name).
		Set("spec.workerGroupSpecs[0].minReplicas", 9).
		Set("spec.workerGroupSpecs[0].maxReplicas", 3)
}

// comesTo is what becomes of an object: denied, warned or silent.
func comesTo(object rig.Object) string {
	cmd := shared.Lab.KubectlCommand(context.Background(), "apply", "--dry-run=server", "-f", "-")
	cmd.Stdin = strings.NewReader(object.YAML())
	out, err := cmd.CombinedOutput()
	said := string(out)
	switch {
	case err != nil && strings.Contains(said, "RF201"):
		return "denied"
	case err != nil:
		return said
	case strings.Contains(said, "Warning: RF201"):
		return "warned"
	}
	return "silent"
}
