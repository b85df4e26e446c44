package scaling_test

import (
	"fmt"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestModesHandOver changes who scales a living cluster, there and back: each
// scales on from where the other left, no worker is lost, and nothing restarts.
func TestModesHandOver(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	c := &scaling.Cluster{Name: "shared", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 3}}}
	d := drive(t, w, c)
	head, err := w.Head(*c)
	if err != nil {
		t.Fatal(err)
	}
	for i, mode := range []scaling.Mode{scaling.Central, scaling.Sidecar, scaling.Central} {
		if err := w.Patch(t.Context(), *c, annotate("rayfit.dev/reconcile", string(mode))); err != nil {
			t.Fatal(err)
		}
		task := fmt.Sprintf("task-%d", i)
		do(t, d, fmt.Sprintf(`hold(%q, 1, num_cpus=1)`, task))
		until(t, w, string(mode)+" scales it", func() error { return scaledBy(w, *c, mode) })
		until(t, w, "the new task works", func() error { return w.Board.AtWork(batch(*c, task), 1) })
	}
	for i := range 3 {
		if err := w.Board.AtWork(batch(*c, fmt.Sprintf("task-%d", i)), 1); err != nil {
			t.Errorf("task %d was lost: %v", i, err)
		}
	}
	if ever, now := len(w.EverWorkers(*c, "")), len(w.Workers(*c, "")); ever != 3 || now != 3 {
		t.Errorf("%d workers were made and %d are left, of 3", ever, now)
	}
	after, err := w.Head(*c)
	if err != nil {
		t.Fatal(err)
	}
	if after.Name() != head.Name() {
		t.Errorf("the head pod is %s, and was %s", after.Name(), head.Name())
	}
	statuses, _ := after.Get("status.containerStatuses").([]any)
	for _, status := range statuses {
		if status := status.(map[string]any); status["restartCount"] != 0.0 {
			t.Errorf("container %v has restarted: %v", status["name"], status["lastState"])
		}
	}
	if len(statuses) != 2 {
		t.Errorf("the head has %d containers, so nobody stood by", len(statuses))
	}
}

// scaledBy is nil once the cluster's object names a mode as its scaler.
func scaledBy(w *scaling.World, c scaling.Cluster, mode scaling.Mode) error {
	object, err := w.RayCluster(c)
	if err != nil {
		return err
	}
	by, _ := object.Get("metadata.annotations[rayfit.dev/scaled-by]").(string)
	if !strings.HasPrefix(by, string(mode)) {
		return fmt.Errorf("it is scaled by %q, not %s", by, mode)
	}
	return nil
}
