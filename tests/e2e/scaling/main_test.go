// Package scaling_test shows that Rayfit scales and resizes real Ray clusters:
// KubeRay's operator, Kubernetes' scheduler and kubelet, and Ray are the real
// ones. The same scenarios run with Ray's own autoscaler (RAYFIT_MODES=ray).
package scaling_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// startWorld starts a lab with the operator and Ray in it, which ends with its
// test, and observes it.
func startWorld(t *testing.T, options lab.Options) *scaling.World {
	t.Helper()
	options.With = []string{lab.WithOperator}
	// Probes are for pods that serve; here each would start a process a second.
	options.OperatorEnv = []string{"ENABLE_PROBES_INJECTION=false"}
	return observe(t, startLab(t, options))
}

// startPlayed starts a lab whose pods are on the books only, and a played GCS
// for every cluster in it.
func startPlayed(t *testing.T, options lab.Options) (*scaling.World, *playgcs.Server) {
	t.Helper()
	options.Workloads = lab.NoProcesses
	w := startWorld(t, options)
	gcs := playgcs.New(w.Look)
	t.Cleanup(gcs.Stop)
	go gcs.Follow(t.Context(), w.Lab)
	return w, gcs
}

// startLab starts a lab that ends with its test.
func startLab(t *testing.T, options lab.Options) *lab.Lab {
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
	l, err := lab.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keepLogs(t, l)
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// keepLogs copies the logs of a failed test's lab to $RAYFIT_KEEP_LOGS, if set.
func keepLogs(t *testing.T, l *lab.Lab) {
	t.Helper()
	folder := os.Getenv("RAYFIT_KEEP_LOGS")
	if folder == "" || !t.Failed() {
		return
	}
	target := filepath.Join(folder, t.Name())
	if err := os.RemoveAll(target); err == nil {
		err = os.CopyFS(target, os.DirFS(filepath.Join(l.Dir(), "logs")))
		t.Logf("logs are kept in %s (%v)", target, err)
	}
}

func observe(t *testing.T, l *lab.Lab) *scaling.World {
	t.Helper()
	w, err := scaling.Observe(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func create(t *testing.T, w *scaling.World, c *scaling.Cluster) {
	t.Helper()
	if err := w.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// drive makes a cluster and a driver in it, both of which end with their test.
func drive(t *testing.T, w *scaling.World, c *scaling.Cluster) *scaling.Driver {
	t.Helper()
	create(t, w, c)
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

// idle changes for how many seconds workers may be idle.
func idle(t *testing.T, w *scaling.World, c scaling.Cluster, seconds int) {
	t.Helper()
	if err := w.Patch(t.Context(), c, rig.Object{}.Set("spec.autoscalerOptions.idleTimeoutSeconds", seconds)); err != nil {
		t.Fatal(err)
	}
}

func upscaling(t *testing.T, w *scaling.World, c scaling.Cluster, mode string) {
	t.Helper()
	if err := w.Patch(t.Context(), c, rig.Object{}.Set("spec.autoscalerOptions.upscalingMode", mode)); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl, which must succeed, and returns its output.
func kubectl(t *testing.T, w *scaling.World, args ...string) string {
	t.Helper()
	stdout, _, err := w.Lab.Kubectl(append(args, "-n", scaling.Namespace)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

func annotate(name, value string) rig.Object {
	return rig.Object{}.Set("metadata.annotations["+name+"]", value)
}
