package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// demand is what a script asks for, and the workers that this takes when there
// are none: groups "small" of one CPU and "large" of two.
type demand struct {
	name  string
	ask   string
	tasks int            // at work, of the batch that is called like the demand
	want  map[string]int // workers by group
}

var demands = []demand{
	{"tasks", `hold("tasks", 2, num_cpus=1, resources={"small": 1})`, 2, map[string]int{"small": 2}},
	{"actors", `hold_actors("actors", 2, num_cpus=1)`, 2, map[string]int{"large": 1}},
	{"custom", `hold("custom", 1, resources={"large": 1}, num_cpus=0)`, 1, map[string]int{"large": 1}},
	{"groups", `hold("groups", 1, num_cpus=1, resources={"small": 1}); kept["groups"].append(task.options(num_cpus=2).remote("groups-b", "groups"))`, 2, map[string]int{"small": 1, "large": 1}},
	{"pack", `group("pack", [{"CPU": 1}, {"CPU": 1}], "PACK")`, 2, map[string]int{"large": 1}},
	{"spread", `group("spread", [{"CPU": 2}, {"CPU": 2}], "SPREAD")`, 2, map[string]int{"large": 2}},
	{"strict-pack", `group("strict-pack", [{"CPU": 1}, {"CPU": 1}], "STRICT_PACK")`, 2, map[string]int{"large": 1}},
	{"strict-spread", `group("strict-spread", [{"CPU": 1}, {"CPU": 1}], "STRICT_SPREAD")`, 2, nil},
	{"request", `request_resources(bundles=[{"CPU": 1, "small": 1}] * 2)`, 0, map[string]int{"small": 2}},
}

// TestDemand runs the same scenarios for each mode, each mode in a cluster of
// its own, one scenario after the other.
func TestDemand(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 32, Memory: "64Gi", Ray: true})
	inEachMode(t, w, scaling.Sidecar, func(t *testing.T, mode scaling.Mode) {
		c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 60, Groups: []scaling.Group{
			{Name: "small", CPU: 1, Max: 3, Custom: map[string]int{"small": 1}},
			{Name: "large", CPU: 2, Max: 3, Custom: map[string]int{"large": 1}},
		}}
		d := drive(t, w, c)
		for _, one := range demands {
			t.Run(one.name, func(t *testing.T) { one.run(t, w, *c, d) })
		}
		t.Run("only the idle go", func(t *testing.T) { onlyTheIdleGo(t, w, *c, d) })
		t.Run("minimum", func(t *testing.T) { minimum(t, w, *c, d) })
		t.Run("maximum raised", func(t *testing.T) { maximumRaised(t, w, *c, d) })
		if mode != scaling.Ray { // which ends the tasks on what is too much
			t.Run("maximum lowered", func(t *testing.T) { maximumLowered(t, w, *c, d) })
		}
		t.Run("conservative", func(t *testing.T) { conservative(t, w, *c, d) })
	})
}

// run asks, sees exactly the workers come, lets go, and sees them go.
func (one demand) run(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	before := len(w.EverWorkers(c, ""))
	do(t, d, one.ask)
	until(t, w, "tasks at work", func() error { return w.TaskGate.AtWork(batch(c, one.name), one.tasks) })
	if one.want != nil {
		until(t, w, "workers of the right groups", func() error { return one.there(w, c) })
		one.exactly(t, w, c, before)
	}
	if one.name == "request" {
		do(t, d, `request_resources(bundles=[])`)
	}
	none(t, w, c, d, one.name)
}

// there is nil if no group has fewer workers than it takes.
func (one demand) there(w *scaling.World, c scaling.Cluster) error {
	for group, want := range one.want {
		if n := len(w.Workers(c, group)); n < want {
			return fmt.Errorf("%d workers of group %q instead of %d", n, group, want)
		}
	}
	return nil
}

// exactly checks how many workers were made. What comes after the first task has
// begun is only told: Ray's GCS hears of nodes and of demand at different
// moments, and may count a task that has just begun with those that wait.
func (one demand) exactly(t *testing.T, w *scaling.World, c scaling.Cluster, before int) {
	t.Helper()
	asked, made := 0, 0
	for _, n := range one.want {
		asked += n
	}
	begun := w.TaskGate.Tasks(batch(c, one.name))
	for _, pod := range w.EverWorkers(c, "")[before:] {
		if len(begun) == 0 || pod.First.Before(begun[0].Began) {
			made++
		} else {
			t.Logf("%s was made only at %s, after a task began at %s", pod.Name(), clock(pod.First), clock(begun[0].Began))
		}
	}
	if made != asked {
		t.Errorf("%d workers were made for what %d can do", made, asked)
	}
}

func clock(moment time.Time) string { return moment.Format("15:04:05.000") }

// batch keeps the tasks of two clusters apart on the world's one gate.
func batch(c scaling.Cluster, name string) string { return c.Name + ":" + name }

// none ends batches and waits until no worker is left. Workers may be idle for
// long before, since on a busy machine Ray takes seconds to begin with a task.
func none(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver, names ...string) {
	t.Helper()
	for _, name := range names {
		w.TaskGate.Release(batch(c, name))
		do(t, d, fmt.Sprintf("drop(%q)", name))
	}
	idle(t, w, c, 1)
	until(t, w, "no workers any more", func() error { return w.HasWorkers(c, "", 0) })
	idle(t, w, c, c.Idle)
}

func hasWorkers(w *scaling.World, c scaling.Cluster, want map[string]int) error {
	for _, g := range c.Groups {
		if err := w.HasWorkers(c, g.Name, want[g.Name]); err != nil {
			return err
		}
	}
	return nil
}

func onlyTheIdleGo(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	do(t, d, `hold("mixed", 3, num_cpus=1, resources={"small": 1})`)
	until(t, w, "three at work", func() error { return w.TaskGate.AtWork(batch(c, "mixed"), 3) })
	finished := w.TaskGate.Tasks(batch(c, "mixed"))[1]
	w.TaskGate.ReleaseTask(finished.Name)
	idle(t, w, c, 1)
	until(t, w, "one worker less", func() error { return w.HasWorkers(c, "", 2) })
	for _, pod := range w.Workers(c, "") {
		if pod.Name() == finished.Pod {
			t.Errorf("the idle worker %s is still there", finished.Pod)
		}
	}
	if err := w.TaskGate.AtWork(batch(c, "mixed"), 2); err != nil {
		t.Error(err)
	}
	none(t, w, c, d, "mixed")
}

func minimum(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	edit(t, w, c, "small", "minReplicas", 1)
	until(t, w, "a worker without demand", func() error { return hasWorkers(w, c, map[string]int{"small": 1}) })
	edit(t, w, c, "small", "minReplicas", 0)
	none(t, w, c, d)
}

func maximumRaised(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	edit(t, w, c, "small", "maxReplicas", 1)
	do(t, d, `hold("raised", 2, num_cpus=1, resources={"small": 1})`)
	until(t, w, "one at work", func() error { return w.TaskGate.AtWork(batch(c, "raised"), 1) })
	edit(t, w, c, "small", "maxReplicas", 3)
	until(t, w, "two at work", func() error { return w.TaskGate.AtWork(batch(c, "raised"), 2) })
	none(t, w, c, d, "raised")
}

// maximumLowered: what is too much leaves when its work is done, not before.
func maximumLowered(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	do(t, d, `hold("lowered", 2, num_cpus=1, resources={"small": 1})`)
	until(t, w, "two at work", func() error { return w.TaskGate.AtWork(batch(c, "lowered"), 2) })
	edit(t, w, c, "small", "maxReplicas", 1)
	w.TaskGate.ReleaseTask(w.TaskGate.Tasks(batch(c, "lowered"))[0].Name)
	until(t, w, "one worker less", func() error { return w.HasWorkers(c, "", 1) })
	if err := w.TaskGate.AtWork(batch(c, "lowered"), 1); err != nil {
		t.Error(err)
	}
	edit(t, w, c, "small", "maxReplicas", 3)
	none(t, w, c, d, "lowered")
}

// conservative: no more may be on its way than runs, one at least.
func conservative(t *testing.T, w *scaling.World, c scaling.Cluster, d *scaling.Driver) {
	upscaling(t, w, c, "Conservative")
	before := w.Made(c, "")
	do(t, d, `hold("slowly", 3, num_cpus=1, resources={"small": 1})`)
	until(t, w, "three at work", func() error { return w.TaskGate.AtWork(batch(c, "slowly"), 3) })
	made := w.MadeWorkers(c, "")[before:]
	if len(made) != 3 {
		t.Errorf("%d workers were made for three tasks", len(made))
	}
	// With Ray's autoscaler, only what it asks for in one round is bounded.
	if early := made[0].Ready.Sub(made[1].First); c.Mode != scaling.Ray && early > 0 {
		t.Errorf("the second worker was made %s before the first was there", early)
	}
	upscaling(t, w, c, "Default")
	none(t, w, c, d, "slowly")
}
