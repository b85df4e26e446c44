package scaling_test

import (
	"fmt"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestMemoryInUse has a task climb to 2.5 GiB in a pod of 1 GiB that may grow to
// 4 GiB, with real memory limits. It has asked for no memory. With Rayfit it
// ends well, and the pod gives the memory back while it goes on; with Ray's
// autoscaler it is killed.
//
// Ray 2.60 keeps the limit of its memory monitor from the start of the pod, so
// it is turned off, and the kernel kills.
func TestMemoryInUse(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "64Gi", Ray: true})
	for _, mode := range []scaling.Mode{scaling.Central, scaling.Sidecar, scaling.Ray} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == scaling.Central {
				if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
					t.Fatal(err)
				}
			}
			c := &scaling.Cluster{Name: "memory-" + string(mode), Mode: mode, Idle: 60, Groups: []scaling.Group{{
				Name: "full", CPU: 1, Min: 1, Max: 1, MaxCPU: 1, Memory: "1Gi", MaxMemory: "4Gi", Limited: true,
				Env: map[string]string{"RAY_memory_monitor_refresh_ms": "0", "REPORTER_UPDATE_INTERVAL_MS": "1000"},
			}}}
			d := drive(t, w, c)
			do(t, d, `climb("climb", 2560, 40, num_cpus=1)`)
			if mode == scaling.Ray {
				if fate := fateOf(t, d, "climb"); fate == "'well'" {
					t.Errorf("a task used more memory than its pod has, and ended well")
				}
				return
			}
			until(t, w, "the task has 2.5 GiB", func() error { return w.TaskGate.AtWork(batch(*c, "climb"), 1) })
			pods := w.EverWorkers(*c, "full")
			if len(pods) != 1 {
				t.Fatalf("%d pods were made, where one was to grow", len(pods))
			}
			hasMemory(t, w, pods[0].Name(), "4Gi")
			w.TaskGate.Release(batch(*c, "climb"))
			hasMemory(t, w, pods[0].Name(), "1Gi")
			until(t, w, "it goes on", func() error { return w.TaskGate.AtWork(batch(*c, "climb-less"), 1) })
			w.TaskGate.Release(batch(*c, "climb-less"))
			if fate := fateOf(t, d, "climb"); fate != "'well'" {
				t.Errorf("the task ended by %s", fate)
			}
		})
	}
}

func fateOf(t *testing.T, d *scaling.Driver, batch string) string {
	t.Helper()
	fate, err := d.Eval(t.Context(), fmt.Sprintf(`value = fate(%q)`, batch))
	if err != nil {
		t.Fatal(err)
	}
	return fate
}

// hasMemory waits until a pod has so much.
func hasMemory(t *testing.T, w *scaling.World, name, amount string) {
	t.Helper()
	// Memory that is freed in parts is given back in parts, each after a minute.
	err := w.UntilWithin(t.Context(), 2*scaling.Patience, "pod "+name+" has "+amount, func() error {
		pod, err := w.Pod(name)
		if err != nil {
			return err
		}
		if has := fmt.Sprint(pod.Get("status.containerStatuses[0].resources.limits.memory")); has != amount {
			return fmt.Errorf("it has %s", has)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
