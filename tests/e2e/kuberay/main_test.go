// Package kuberay_test shows that Rayfit and the real KubeRay operator get
// along: what one admits the other accepts, nothing that Rayfit fills in starts
// an upgrade, and Rayfit fits into the place of Ray's autoscaler container.
// Each test has a lab of its own.
package kuberay_test

import (
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// patience is how long anything may take on a busy machine.
const patience = 5 * time.Minute

// startLab starts a lab that ends with its test.
func startLab(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	if _, err := rig.Binary(); err != nil {
		t.Fatal(err)
	}
	return labtest.Start(t, options)
}

// install puts Rayfit in front of a lab's API server.
func install(t *testing.T, l *lab.Lab, args ...string) *rig.Rig {
	t.Helper()
	r, err := rig.Start(t.Context(), l, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
