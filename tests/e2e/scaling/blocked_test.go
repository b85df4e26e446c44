package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestBlockedGroup has a task that fits two groups, of which the better one is
// gated as Kueue gates pods without quota: the other group serves it. Once the
// gate is removed, the pod that is not needed any more goes.
func TestBlockedGroup(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	c := &scaling.Cluster{Name: "blocked", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
		{Name: "first", CPU: 1, Max: 2, Gate: "example.com/quota"},
		{Name: "second", CPU: 1, Max: 2},
	}}
	d := drive(t, w, c)
	begun := time.Now()
	do(t, d, `hold("one", 1, num_cpus=1)`)
	until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "one"), 1) })
	first, second := w.EverWorkers(*c, "first"), w.EverWorkers(*c, "second")
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("%d pods of the gated group and %d of the other were made instead of one each", len(first), len(second))
	}
	task := w.TaskGate.Tasks(batch(*c, "one"))[0]
	if task.Pod != second[0].Name() {
		t.Errorf("the task works on %s", task.Pod)
	}
	t.Logf("asked for; gated pod after %s, the other group's pod after %s, at work after %s",
		since(begun, first[0].First), since(begun, second[0].First), since(begun, task.Began))
	if err := w.Said(c.Name, "Problem", `scheduling gate "example.com/quota"`); err != nil {
		t.Error(err)
	}

	do(t, d, `hold("two", 1, num_cpus=1)`)
	until(t, w, "the second task works", func() error { return w.TaskGate.AtWork(batch(*c, "two"), 1) })
	if n := w.Made(*c, "first"); n != 1 {
		t.Errorf("%d pods of the gated group were made: it was tried again", n)
	}
	until(t, w, "the gated pod is withdrawn", func() error {
		if n := len(w.Workers(*c, "first")); n != 0 {
			return fmt.Errorf("%d pods of the gated group are there", n)
		}
		return nil
	})

	// There is no room in the other group: what fits nowhere else goes to the gated one.
	do(t, d, `hold("three", 1, num_cpus=1)`)
	until(t, w, "a pod of the gated group", func() error { return w.HasWorkers(*c, "first", 1) })
	until(t, w, "the third task works", func() error {
		// Again and again, since a pod whose Ray node does not start is replaced by one with a gate.
		for _, pod := range w.Workers(*c, "first") {
			if err := ungate(w, pod.Name()); err != nil {
				return err
			}
		}
		return w.TaskGate.AtWork(batch(*c, "three"), 1)
	})
	for _, name := range []string{"one", "two", "three"} {
		w.TaskGate.Release(batch(*c, name))
	}
}

func since(begun, then time.Time) time.Duration {
	return then.Sub(begun).Round(10 * time.Millisecond)
}

// ungate removes the scheduling gates of a pod, as a controller of quotas does.
func ungate(w *scaling.World, pod string) error {
	_, _, err := w.Lab.Kubectl("patch", "pod", pod, "-n", w.Namespace, "--type=merge", `--patch={"spec":{"schedulingGates":null}}`)
	return err
}
