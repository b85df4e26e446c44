package scaling_test

import (
	"fmt"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// nobody is who scales a cluster that no Rayfit scales.
const nobody scaling.Mode = "nobody"

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
		until(t, w, "the new task works", func() error { return w.TaskGate.AtWork(batch(*c, task), 1) })
	}
	for i := range 3 {
		if err := w.TaskGate.AtWork(batch(*c, fmt.Sprintf("task-%d", i)), 1); err != nil {
			t.Errorf("task %d was lost: %v", i, err)
		}
	}
	if named := w.Named(*c); len(named) != 0 {
		t.Errorf("%q were named for deletion", named)
	}
	failed := 0 // by themselves, as a Ray that does not come up on a machine that stalls
	for _, pod := range w.EverWorkers(*c, "") {
		if !pod.Failed.IsZero() {
			t.Logf("worker %s failed: %v", pod.Name(), pod.Get("status.containerStatuses"))
			failed++
		}
	}
	if ever, now := len(w.EverWorkers(*c, "")), len(w.Workers(*c, "")); ever != 3+failed || now != 3 {
		t.Errorf("%d workers were made, %d of them failed by themselves, and %d are left, of 3", ever, failed, now)
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

// TestHeadIsReplaced deletes the head pod under work: Ray begins anew, and what
// is left of the old cluster neither blocks the new one nor stays for ever.
func TestHeadIsReplaced(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	inEachMode(t, w, scaling.Sidecar, func(t *testing.T, mode scaling.Mode) {
		c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 3600, Patience: 5, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 3}}}
		d := drive(t, w, c)
		do(t, d, `hold("before", 2, num_cpus=1)`)
		until(t, w, "two tasks work", func() error { return w.TaskGate.AtWork(batch(*c, "before"), 2) })
		d = newHead(t, w, *c, d)
		do(t, d, `hold("after", 3, num_cpus=1)`)
		until(t, w, "three tasks work", func() error { return w.TaskGate.AtWork(batch(*c, "after"), 3) })
		if there := len(w.Workers(*c, "")); there != 3 {
			t.Errorf("%d workers are there for three", there)
		}
		none(t, w, *c, d, "after")
	})
}

// TestThereAndBackFromRay hands a living cluster to Ray's own autoscaler, as
// docs/runbook.md says, and takes it over again.
func TestThereAndBackFromRay(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	c := &scaling.Cluster{Name: "shared", Mode: scaling.Central, Port: scaling.RayPort, Idle: 3600, Patience: 5, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 4}}}
	d := drive(t, w, c)
	ours, small := c.Object().Get("spec.autoscalerOptions.image"), c.Object().Get("spec.autoscalerOptions.resources")
	tasks := 0
	work := func(by string, noted scaling.Mode) {
		t.Helper()
		tasks++
		name := fmt.Sprintf("task-%d", tasks)
		do(t, d, fmt.Sprintf(`hold(%q, %d, num_cpus=1)`, name, tasks))
		until(t, w, "tasks work, scaled by "+by, func() error { return w.TaskGate.AtWork(batch(*c, name), tasks) })
		if err := scaledBy(w, *c, noted); err != nil {
			t.Error(err)
		}
		w.TaskGate.Release(batch(*c, name))
	}
	// What is small enough for Rayfit is too small for Ray's autoscaler.
	change := func(mode string, image, resources any) {
		t.Helper()
		patch := annotate("rayfit.dev/reconcile", mode).Set("spec.autoscalerOptions.image", image).
			Set("spec.autoscalerOptions.resources", resources)
		if err := w.Patch(t.Context(), *c, patch); err != nil {
			t.Fatal(err)
		}
	}

	work("Rayfit", scaling.Central)
	change("ray", nil, nil)
	until(t, w, "Rayfit lets go", func() error { return scaledBy(w, *c, nobody) })
	d = newHead(t, w, *c, d)
	work("Ray", nobody)
	change("central", ours, small)
	work("Ray, whose autoscaler is still in the head pod", nobody)
	d = newHead(t, w, *c, d)
	work("Rayfit again", scaling.Central)
	none(t, w, *c, d)
}

// newHead deletes the head pod, and returns a driver in the next one.
func newHead(t *testing.T, w *scaling.World, c scaling.Cluster, old *scaling.Driver) *scaling.Driver {
	t.Helper()
	before, err := w.Head(c)
	if err != nil {
		t.Fatal(err)
	}
	old.Close()
	kubectl(t, w, "delete", "pod", before.Name(), "--wait=false")
	until(t, w, "the next head", func() error {
		head, err := w.Head(c)
		if err == nil && head.Get("metadata.uid") == before.Get("metadata.uid") {
			err = fmt.Errorf("it is still %s", head.Name())
		}
		return err
	})
	return scalingtest.Connect(t, c, w.Drive)
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
