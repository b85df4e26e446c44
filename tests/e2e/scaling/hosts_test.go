package scaling_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestSeveralHosts scales a group whose replicas have two hosts each: they come
// whole, and go whole, and a replica stays for as long as one of its hosts works.
func TestSeveralHosts(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	inEachMode(t, w, scaling.Central, func(t *testing.T, mode scaling.Mode) {
		c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 3600, Groups: []scaling.Group{{Name: "slice", CPU: 1, Max: 3, Hosts: 2}}}
		d := drive(t, w, c)
		do(t, d, `hold("one", 1, num_cpus=1)`)
		until(t, w, "a task works", func() error { return w.TaskGate.AtWork(batch(*c, "one"), 1) })
		until(t, w, "a whole replica", func() error { return w.HasWorkers(*c, "", 2) })
		busy := replica(t, w, w.TaskGate.Tasks(batch(*c, "one"))[0].Pod)
		do(t, d, `group("gang", [{"CPU": 1}] * 3, "STRICT_SPREAD")`)
		until(t, w, "three more hosts work", func() error { return w.TaskGate.AtWork(batch(*c, "gang"), 3) })
		if made := w.Made(*c, ""); made != 4 {
			t.Errorf("%d hosts were made for four", made)
		}

		w.TaskGate.Release(batch(*c, "gang"))
		do(t, d, `drop("gang")`)
		idle(t, w, *c, 1)
		until(t, w, "the idle replica goes", func() error { return w.HasWorkers(*c, "", 2) })
		for _, pod := range w.Workers(*c, "") {
			if of := replica(t, w, pod.Name()); of != busy {
				t.Errorf("%s of replica %s is still there, and not all of %s, which works", pod.Name(), of, busy)
			}
		}
		if err := w.TaskGate.AtWork(batch(*c, "one"), 1); err != nil {
			t.Error(err)
		}
		none(t, w, *c, d, "one")
		if made := w.Made(*c, ""); made != 4 {
			t.Errorf("%d hosts were made, of which none was needed after the fourth", made)
		}
	})
}

// replica is the one that a pod belongs to.
func replica(t *testing.T, w *scaling.World, pod string) string {
	t.Helper()
	found, err := w.Pod(pod)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := found.Get("metadata.labels[ray.io/worker-group-replica-name]").(string)
	if name == "" {
		t.Fatalf("pod %s names no replica", pod)
	}
	return name
}
