package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// policy applies a RayPolicy, which goes with the test.
func policy(t *testing.T, name, spec string) {
	t.Helper()
	t.Cleanup(func() { must(t, "delete", "rayp", name) })
	if _, _, err := shared.Lab.Apply(manifest(name, spec)); err != nil {
		t.Fatal(err)
	}
}

// change merges a patch into a RayPolicy's spec, and returns what the API server
// warns of.
func change(t *testing.T, policy, spec string) string {
	t.Helper()
	path := "/apis/rayfit.dev/v1alpha1/raypolicies/" + policy
	_, warnings, err := shared.Lab.RequestWarned(t.Context(), http.MethodPatch, path, []byte(`{"spec":`+spec+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(warnings, "\n")
}

func manifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: rayfit.dev/v1alpha1\nkind: RayPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

var namespaces atomic.Int32

// namespace makes a namespace. Its Ray objects go
// with the test, so that the next one finds none.
func namespace(t *testing.T, name string) string {
	t.Helper()
	// The number lets `go test -count=2` work.
	name = fmt.Sprintf("%s-%d", name, namespaces.Add(1))
	must(t, "create", "namespace", name)
	t.Cleanup(func() { must(t, "delete", "rayclusters", "--all", "-n", name) })
	return name
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _, err := shared.Lab.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

func is(got, wanted string) error {
	if got != wanted {
		return fmt.Errorf("it is %q and not %q", got, wanted)
	}
	return nil
}

// rayfit runs the binary against the lab. Exit code 1 is its word for findings
// that deny, and no failure.
func rayfit(t *testing.T, input string, args ...string) string {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+shared.Lab.Kubeconfig())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if failed := new(exec.ExitError); err != nil && !(errors.As(err, &failed) && failed.ExitCode() == 1) {
		t.Fatalf("rayfit %s: %v: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return string(out)
}

// collection is the path of a namespace's RayClusters.
func collection(object rig.Object) string {
	return fmt.Sprintf("/apis/ray.io/v1/namespaces/%s/rayclusters", object.Get("metadata.namespace"))
}

// store makes an object that nothing denies.
func store(t *testing.T, object rig.Object) {
	t.Helper()
	if _, err := shared.Lab.Request(t.Context(), http.MethodPost, collection(object), object.JSON()); err != nil {
		t.Fatal(err)
	}
}

// faulty is a RayCluster that breaks RF201, which denies by itself.
func faulty(namespace, name string) rig.Object {
	return rig.RayCluster(namespace, name).
		Set("spec.workerGroupSpecs[0].minReplicas", 9).
		Set("spec.workerGroupSpecs[0].maxReplicas", 3)
}

// try has the API server make an object without storing it.
func try(object rig.Object) (said string, denied bool, err error) {
	return create(object, "?dryRun=All")
}

// create has the API server make an object; said is what it warns of, or why it
// refuses.
func create(object rig.Object, query string) (said string, denied bool, err error) {
	_, warnings, err := shared.Lab.RequestWarned(noDeadline, http.MethodPost, collection(object)+query, object.JSON())
	if status := new(lab.StatusError); errors.As(err, &status) && status.Code == http.StatusUnprocessableEntity {
		return status.Message, true, nil
	}
	return strings.Join(warnings, "\n"), false, err
}

// comesTo is what becomes of a faulty object: denied, warned or silent.
func comesTo(object rig.Object) string {
	said, denied, err := try(object)
	switch {
	case err != nil:
		return err.Error()
	case denied && strings.Contains(said, "RF201"):
		return "denied"
	case denied:
		return said
	case strings.Contains(said, "RF201"):
		return "warned"
	}
	return "silent"
}
