// Package scaling_test shows that Rayfit scales and resizes real Ray clusters:
// KubeRay's operator, Kubernetes' scheduler and kubelet, and Ray are the real
// ones. The same scenarios run with Ray's own autoscaler (RAYFIT_MODES=ray).
package scaling_test

import (
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// startWorld starts a lab with Ray in it, which ends with its test.
func startWorld(t *testing.T, options lab.Options) *scaling.World {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: the test's name would make paths of sockets too long.
	dir, err := os.MkdirTemp("", "rayfit-scaling-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	options.Dir, options.Progress, options.RayfitBinary = dir, os.Stderr, binary
	options.With = []string{lab.WithOperator}
	// Probes are for pods that serve; here each would start a process a second.
	options.OperatorEnv = []string{"ENABLE_PROBES_INJECTION=false"}
	l, err := lab.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	w, err := scaling.Observe(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// drive makes a cluster and a driver in it, both of which end with their test.
func drive(t *testing.T, w *scaling.World, c *scaling.Cluster) *scaling.Driver {
	t.Helper()
	if err := w.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	d, err := w.Drive(t.Context(), *c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// do runs code in a driver, which must succeed.
func do(t *testing.T, d *scaling.Driver, code string) {
	t.Helper()
	if err := d.Do(t.Context(), code); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition, which must come true.
func until(t *testing.T, w *scaling.World, what string, condition func() error) {
	t.Helper()
	if err := w.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}
