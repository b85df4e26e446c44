package scaling_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// nodeIsTaken has Google's taint, 30 seconds before the node goes, and a node that
// goes as soon as one of the two tasks on it has ended: without a word, as a machine
// does that is switched off. Who taints and takes it is played.
func nodeIsTaken(t *testing.T, w *scaling.World, mode scaling.Mode) {
	c := &scaling.Cluster{Name: "taken", Mode: mode, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 2, Max: 3}}}
	d := drive(t, w, c)
	head, err := w.Head(*c)
	if err != nil {
		t.Fatal(err)
	}
	nap(t, w, d, *c, "short", 1, 15)
	nap(t, w, d, *c, "long", 1, 40)
	until(t, w, "both tasks have begun", func() error {
		return firstOf(attempted(w, *c, "short", 1), attempted(w, *c, "long", 1))
	})
	old := w.Workers(*c, "")[0]
	node := fmt.Sprint(old.Get("spec.nodeName"))
	if head.Get("spec.nodeName") == node {
		t.Fatalf("head and worker are both on %s", node)
	}
	number, err := strconv.Atoi(strings.TrimPrefix(node, "node-"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	kubectl(t, w, "taint", "node", node, "cloud.google.com/impending-node-termination:NoSchedule")
	if mode != scaling.Ray {
		until(t, w, "a pod in its place", func() error { return ever(w, *c, 2) })
		until(t, w, "the Ray node is drained", func() error { return w.Said(c.Name, "Draining", "cloud.google.com/impending-node-termination") })
	}
	within(t, w, "the short task ends", func() error { return attempted(w, *c, "short-ended", 1) })
	// It has checked in at its end; its result is safe only with its driver.
	do(t, d, `ray.get(kept["short"])`)
	gone := time.Now()
	if err := w.Lab.CrashNode(number); err != nil {
		t.Fatal(err)
	}
	within(t, w, "the long task begins again", func() error { return attempted(w, *c, "long", 2) })
	tasks := w.TaskGate.Tasks(batch(*c, "long"))
	t.Logf("mode %s: the other pod was made %s after the taint; the node was gone after %s, with %s of work of the long task, which began again %s after that on %s",
		mode, since(begun, w.EverWorkers(*c, "")[1].First), since(begun, gone), since(tasks[0].Began, gone), since(gone, tasks[1].Began), tasks[1].Pod)
	if tasks[1].Pod == old.Name() {
		t.Errorf("it began again on %s", old.Name())
	}
	within(t, w, "the long task ends", func() error { return attempted(w, *c, "long-ended", 1) })
	if err := attempted(w, *c, "short", 1); err != nil {
		t.Error(err)
	}
	if mode != scaling.Ray {
		if first := w.EverWorkers(*c, "")[1].First; first.After(gone) {
			t.Errorf("the other pod was made only when the node was gone")
		}
	}
	// What ran there can be deleted only by a kubelet that is there.
	if err := w.Lab.StartNode(number); err != nil {
		t.Fatal(err)
	}
	kubectl(t, w, "taint", "node", node, "cloud.google.com/impending-node-termination-")
}
