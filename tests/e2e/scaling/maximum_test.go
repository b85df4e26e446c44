package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestMaximumHolds lowers a maximum below workers that never finish, as KubeRay's
// own test of it does: it is reached at once with strategy ray, as with Ray's
// autoscaler, and otherwise once the time that the policy gives is over.
func TestMaximumHolds(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name, policy string
		least        time.Duration
		warns        bool
	}{
		{"gently", `drainTimeoutSeconds: 15`, 15 * time.Second, true},
		{"at-once", `drainTimeoutSeconds: 0`, 0, false},
		{"as-ray", `strategy: ray`, 0, false},
	} {
		t.Run(one.name, func(t *testing.T) {
			policy(t, w, one.name, fmt.Sprintf(`{match: {kinds: [RayCluster], names: [%s]}, reconcile: {%s}}`, one.name, one.policy))
			c := &scaling.Cluster{Name: one.name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 2}}}
			d := drive(t, w, c)
			do(t, d, `hold_actors("busy", 2, num_cpus=1, lifetime="detached")`)
			until(t, w, "two actors work", func() error { return w.TaskGate.AtWork(batch(*c, "busy"), 2) })
			edit(t, w, *c, "small", "maxReplicas", 1)
			begun := time.Now()
			if one.warns {
				until(t, w, "an Event says who waits", func() error { return w.Said(c.Name, "AboveMaximum", "work that holds {CPU: 1}") })
				if err := w.HasWorkers(*c, "", 2); err != nil {
					t.Error(err)
				}
			}
			until(t, w, "the maximum holds", func() error { return w.HasWorkers(*c, "", 1) })
			took := time.Since(begun).Round(100 * time.Millisecond)
			t.Logf("the maximum held after %s", took)
			if took < one.least {
				t.Errorf("the worker was gone after %s, and had %s", took, one.least)
			}
			if err := w.Said(c.Name, "Stopping", "its time is over"); err != nil {
				t.Error(err)
			}
			// A pod is no worker any more once it is being deleted; its actor ends with its container, a moment later.
			until(t, w, "the pod above the maximum is gone", func() error { return gone(w, *c, 1) })
			until(t, w, "the actor in it was ended, and no other", func() error { return ended(w, *c, "busy", 1) })
		})
	}
}

// gone is nil once so many of the workers that the cluster has ever had are gone.
func gone(w *scaling.World, c scaling.Cluster, count int) error {
	left := 0
	for _, pod := range w.EverWorkers(c, "") {
		if !pod.Gone.IsZero() {
			left++
		}
	}
	if left != count {
		return fmt.Errorf("%d pods are gone instead of %d", left, count)
	}
	return nil
}

// ended is nil if so many tasks of a batch were ended by somebody else.
func ended(w *scaling.World, c scaling.Cluster, name string, count int) error {
	lost := 0
	for _, task := range w.TaskGate.Tasks(batch(c, name)) {
		if task.Lost {
			lost++
		}
	}
	if lost != count {
		return fmt.Errorf("%d tasks of batch %s were ended instead of %d", lost, name, count)
	}
	return nil
}
