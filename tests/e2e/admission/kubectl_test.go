package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/rig"

	"rayfit.dev/rayfit/tests/lab/labtest"
)

// timeout is how long a condition may take to come true on a busy machine.
const timeout = 5 * time.Minute

var namespaces atomic.Int32

// namespace makes a namespace for the test; it goes with the lab.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	// The number lets `go test -count=2` work.
	name = fmt.Sprintf("%s-%d", name[:min(len(name), 58)], namespaces.Add(1))
	kubectl(t, "create", "namespace", name)
	return name
}

// run runs kubectl with an object on its standard input.
func run(t *testing.T, object rig.Object, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, said strings.Builder
	cmd := shared.Lab.KubectlCommand(t.Context(), append(args, "-f", "-")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(object.JSON())), &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// kubectl runs kubectl, which must succeed, and returns its output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return labtest.Kubectl(t, shared.Lab, args...)
}

// accepted applies an object, which must succeed, and returns the warnings.
// args are added to `kubectl apply`.
func accepted(t *testing.T, object rig.Object, args ...string) string {
	t.Helper()
	_, stderr, err := run(t, object, append([]string{"apply"}, args...)...)
	if err != nil {
		t.Fatalf("%s is not accepted: %v: %s", object.Name(), err, stderr)
	}
	return stderr
}

// denied applies an object, which must be denied, and returns what kubectl says.
func denied(t *testing.T, object rig.Object, args ...string) string {
	t.Helper()
	stdout, stderr, err := run(t, object, append([]string{"apply"}, args...)...)
	if err == nil {
		t.Fatalf("%s is accepted: %s%s", object.Name(), stdout, stderr)
	}
	return stderr
}

// reference is how kubectl is told of one object.
func reference(object rig.Object) []string {
	return []string{fmt.Sprint(object["kind"]), object.Name(), "--namespace", fmt.Sprint(object.Get("metadata.namespace"))}
}

// on runs a kubectl command on one object, which must succeed.
func on(t *testing.T, object rig.Object, command string, args ...string) string {
	t.Helper()
	return kubectl(t, append(append(strings.Fields(command), reference(object)...), args...)...)
}

// stored reads an object back.
func stored(t *testing.T, object rig.Object) rig.Object {
	t.Helper()
	return parsed(t, on(t, object, "get", "-o", "json"))
}

func parsed(t *testing.T, raw string) rig.Object {
	t.Helper()
	var object rig.Object
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		t.Fatalf("%v in: %s", err, raw)
	}
	return object
}

// hasOnce checks that a text has each of the parts exactly once.
func hasOnce(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if n := strings.Count(text, part); n != 1 {
			t.Errorf("%q is there %d times instead of once in:\n%s", part, n, text)
		}
	}
}

// lacks checks that a text has none of the parts.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q should not be in:\n%s", part, text)
		}
	}
}

// has checks the value at a path of a stored object.
func has(t *testing.T, object rig.Object, path string, want any) {
	t.Helper()
	if got := object.Get(path); got != want {
		t.Errorf("%s of %s is %v (%T) instead of %v", path, object.Name(), got, got, want)
	}
}

// beforeRayfit stores objects as if Rayfit had come to the cluster after them.
func beforeRayfit(t *testing.T, objects ...rig.Object) {
	t.Helper()
	if err := shared.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A test that fails here is not to have the next one run without Rayfit.
	defer install(t, rig.FailOpen)
	for _, object := range objects {
		accepted(t, object)
	}
}

func install(t *testing.T, policy rig.FailurePolicy) {
	t.Helper()
	if err := shared.Install(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
}

// serveWith restarts Rayfit with other arguments until the test ends.
func serveWith(t *testing.T, args ...string) {
	t.Helper()
	restart(t, args...)
	t.Cleanup(func() { restart(t) })
}

func restart(t *testing.T, args ...string) {
	t.Helper()
	stop(t)
	start(t, args...)
}

func stop(t *testing.T) {
	t.Helper()
	if err := shared.Server.Stop(); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, args ...string) {
	t.Helper()
	// A test's own context has ended when its clean-up runs.
	if err := shared.Server.Start(noDeadline, args...); err != nil {
		t.Fatal(err)
	}
}

// metrics are Rayfit's, as of now.
func metrics(t *testing.T) rig.Metrics {
	t.Helper()
	samples, err := shared.Server.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// calls counts the reviews that Rayfit has answered, dry runs included.
func calls(t *testing.T) float64 {
	t.Helper()
	return metrics(t).Sum("rayfit_admission_requests_total")
}
