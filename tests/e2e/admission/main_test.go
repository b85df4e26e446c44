// Package admission_test shows what a person with kubectl meets when Rayfit's
// webhooks stand before a real API server. All tests share one lab; each works
// in a namespace of its own.
package admission_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// shared is the lab with Rayfit in front of it, failing open.
var shared *rig.Rig

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := 1
	if err := withRig(func() { code = m.Run() }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func withRig(tests func()) (err error) {
	if _, err := rig.Binary(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-e2e-")
	if err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(context.Background(), lab.Options{
		Dir: dir, AdmissionOnly: true, Audit: lab.AuditMetadata, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := l.Stop(); err == nil {
			err = stopped
		}
	}()
	if shared, err = rig.Start(context.Background(), l); err != nil {
		return err
	}
	tests()
	return nil
}

// namespace makes a namespace for the test; it goes with the lab.
func namespace(t *testing.T) string {
	t.Helper()
	name := "e2e-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	if len(name) > 60 {
		name = strings.TrimRight(name[:60], "-")
	}
	kubectl(t, "create", "namespace", name)
	return name
}

// kubectl runs kubectl, which must succeed, and returns its output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _, err := shared.Lab.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

// accepted applies an object, which must succeed, and returns the warnings.
func accepted(t *testing.T, object rig.Object) string {
	t.Helper()
	_, stderr, err := shared.Lab.Apply(object.YAML())
	if err != nil {
		t.Fatalf("%s is not accepted: %v", object.Name(), err)
	}
	return stderr
}

// denied applies an object, which must be denied, and returns what kubectl says.
func denied(t *testing.T, object rig.Object) string {
	t.Helper()
	stdout, stderr, err := shared.Lab.Apply(object.YAML())
	if err == nil {
		t.Fatalf("%s is accepted: %s%s", object.Name(), stdout, stderr)
	}
	return stderr
}

// stored reads an object back.
func stored(t *testing.T, object rig.Object) rig.Object {
	t.Helper()
	return parsed(t, kubectl(t, "get", fmt.Sprint(object["kind"]), object.Name(), "-n", fmt.Sprint(object.Get("metadata.namespace")), "-o", "json"))
}

// containsOnce checks that a text has each of the parts exactly once.
func containsOnce(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if n := strings.Count(text, part); n != 1 {
			t.Errorf("%q is there %d times instead of once in:\n%s", part, n, text)
		}
	}
}
