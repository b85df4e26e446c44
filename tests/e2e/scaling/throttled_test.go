package scaling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestGrowthRunsFaster has a task of two threads compute in a pod of one CPU that may grow to two,
// where the kernel holds the container to its CPU limit. As a task of one CPU it gets one, as a
// task of two CPUs more, and once the pod has shrunk one again.
func TestGrowthRunsFaster(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "64Gi", Ray: true})
	for _, mode := range []scaling.Mode{scaling.Central, scaling.Sidecar} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == scaling.Central {
				if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
					t.Fatal(err)
				}
			}
			c := &scaling.Cluster{Name: "throttled-" + string(mode), Mode: mode, Idle: 600, Groups: []scaling.Group{{
				Name: "busy", CPU: 1, Min: 1, Max: 1, MaxCPU: 2, Throttled: true,
			}}}
			d := drive(t, w, c)
			hasOne := func() {
				t.Helper()
				until(t, w, "the pod has one CPU", func() error { return hasCPUs(w, *c, "1") })
				if most := mostCPUs(t, d, 1); most > 1.15 {
					t.Errorf("a container with a limit of one CPU used %.2f", most)
				}
			}
			hasOne()
			// Where others keep the machine busy, it gets less than it may have.
			until(t, w, "a task of two CPUs uses more than one", func() error {
				if most := mostCPUs(t, d, 2); most < 1.25 {
					return fmt.Errorf("it used %.2f", most)
				}
				return nil
			})
			hasOne()
			pods := w.EverWorkers(*c, "busy")
			if len(pods) != 1 {
				t.Errorf("%d pods were made, where one was to grow", len(pods))
			}
		})
	}
}

func hasCPUs(w *scaling.World, c scaling.Cluster, amount string) error {
	for _, pod := range w.Workers(c, "") {
		if _, has := size(pod); has != amount {
			return fmt.Errorf("pod %s has %s", pod.Name(), has)
		}
		return nil
	}
	return errors.New("there is no pod")
}

// mostCPUs is how many CPUs a task that asks for so many has used at the most.
func mostCPUs(t *testing.T, d *scaling.Driver, asked int) float64 {
	t.Helper()
	said, err := d.Eval(t.Context(), fmt.Sprintf("value = burn(2, 3, num_cpus=%d)", asked))
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	if err := json.Unmarshal([]byte(said), &rates); err != nil {
		t.Fatalf("read %q: %v", said, err)
	}
	t.Logf("a task of %d CPUs used %v", asked, rates)
	return slices.Max(rates)
}
