package scaling_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// lasting is how long tasks may take that begin again once.
const lasting = 4 * time.Minute

// TestGracefulEnd deletes pods with a task of 20 and one of 45 seconds, with what
// Kubernetes and Ray do where nothing is set, and with what DF10 fills in.
func TestGracefulEnd(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name         string
		grace, drain int
		attempts     map[int]int
	}{
		{"as-it-was", 30, 0, map[int]int{20: 1, 45: 2}},
		{"filled-in", 60, 50, map[int]int{20: 1, 45: 1}},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := &scaling.Cluster{Name: one.name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
				{Name: "small", CPU: 2, Max: 2, Grace: one.grace, Drain: one.drain},
			}}
			d := drive(t, w, c)
			for seconds := range one.attempts {
				nap(t, w, d, *c, fmt.Sprint(seconds), 1, seconds)
			}
			for seconds := range one.attempts {
				until(t, w, "the task has begun", func() error { return attempted(w, *c, fmt.Sprint(seconds), 1) })
			}
			pods := w.Workers(*c, "")
			if len(pods) != 1 {
				t.Fatalf("%d workers instead of one", len(pods))
			}
			begun := time.Now()
			kubectl(t, w, "delete", "pod", pods[0].Name(), "--wait=false")
			for seconds, attempts := range one.attempts {
				name := fmt.Sprint(seconds)
				within(t, w, "the task ends", func() error { return attempted(w, *c, name+"-ended", 1) })
				t.Logf("grace %d s, drain %d s: the task of %d s began %d times, and had ended %s after the pod was deleted",
					one.grace, cmp.Or(one.drain, 30), seconds, len(w.TaskGate.Tasks(batch(*c, name))), time.Since(begun).Round(100*time.Millisecond))
				if err := attempted(w, *c, name, attempts); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// nap starts tasks that take so many seconds and begin again where they are lost.
func nap(t *testing.T, w *scaling.World, d *scaling.Driver, c scaling.Cluster, name string, count, seconds int) {
	t.Helper()
	w.TaskGate.Release(batch(c, name))
	w.TaskGate.Release(batch(c, name+"-ended"))
	do(t, d, fmt.Sprintf(`nap(%q, %d, %d, num_cpus=1)`, name, count, seconds))
}

// attempted is nil if the tasks of a batch have begun so many times.
func attempted(w *scaling.World, c scaling.Cluster, name string, times int) error {
	if n := len(w.TaskGate.Tasks(batch(c, name))); n != times {
		return fmt.Errorf("tasks of batch %s began %d times, not %d times", name, n, times)
	}
	return nil
}

// within waits for something that takes as long as tasks that begin again.
func within(t *testing.T, w *scaling.World, what string, condition func() error) {
	t.Helper()
	if err := w.UntilWithin(t.Context(), lasting, what, condition); err != nil {
		t.Fatal(err)
	}
}
