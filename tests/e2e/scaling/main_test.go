// Package scaling_test shows that Rayfit scales and resizes real Ray clusters:
// KubeRay's operator, Kubernetes' scheduler and kubelet, and Ray are the real
// ones. The same scenarios run with Ray's own autoscaler (RAYFIT_MODES=ray).
package scaling_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
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

// modes are those to try: $RAYFIT_MODES, separated by commas.
func modes(t *testing.T, w *scaling.World) []scaling.Mode {
	t.Helper()
	named := os.Getenv("RAYFIT_MODES")
	if named == "" {
		named = "central,sidecar"
	}
	var found []scaling.Mode
	for _, mode := range strings.Split(named, ",") {
		found = append(found, scaling.Mode(mode))
	}
	if slices.Contains(found, scaling.Central) {
		if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// edit changes a number of a worker group.
func edit(t *testing.T, w *scaling.World, c scaling.Cluster, group, field string, value int) {
	t.Helper()
	for i, g := range c.Groups {
		if g.Name == group {
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/workerGroupSpecs/%d/%s","value":%d}]`, i, field, value)
			if _, _, err := w.Lab.Kubectl("patch", "raycluster", c.Name, "-n", scaling.Namespace, "--type=json", "--patch", patch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func upscaling(t *testing.T, w *scaling.World, c scaling.Cluster, mode string) {
	t.Helper()
	if err := w.Patch(t.Context(), c, rig.Object{}.Set("spec.autoscalerOptions.upscalingMode", mode)); err != nil {
		t.Fatal(err)
	}
}
