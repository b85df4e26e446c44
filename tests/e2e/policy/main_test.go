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
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

var shared *rig.Rig

var noDeadline = context.Background()

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
	l, err := lab.Start(noDeadline, lab.Options{Dir: dir, AdmissionOnly: true, Progress: os.Stderr})
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
	shared, err = rig.Start(noDeadline, l, "--no-controller", "--kubeconfig="+l.Kubeconfig())
	if err != nil {
		return err
	}
	tests()
	return nil
}
