// Package scalingtest observes clusters that scale, for tests.
package scalingtest

import (
	"context"
	"slices"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// Control starts a replica that reaches the API server at a URL, that of the lab if it is
// empty. A test that has failed tells the replica's log.
func Control(t *testing.T, l *lab.Lab, url string) {
	t.Helper()
	controller, err := scaling.StartController(t.Context(), l, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controller's log:\n%s", controller.Log())
		}
	})
}

// Observe observes a lab's clusters until the test ends. A test that has failed tells
// what was seen to happen.
func Observe(t *testing.T, l *lab.Lab) *scaling.World {
	t.Helper()
	// Not the test's context, which ends before its clusters do.
	w, err := scaling.Observe(context.Background(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		if t.Failed() {
			t.Logf("what was seen to happen:\n%s", w.History())
			for _, record := range slices.Concat(w.Ended(), w.RayLogs()) {
				t.Log(record)
			}
		}
	})
	return w
}
