package scaling_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestPodLevelResources has a worker whose resources as a whole are bounded at three
// CPUs, and whose container starts with one and may grow to four by `ray.io/ippr`:
// RF118 says that it cannot, the container grows to three in place, and for what
// is beyond that there is another pod. Another worker's pod requests less than its
// container grows to: the pod's request is raised with the container's, and both
// come down.
func TestPodLevelResources(t *testing.T) {
	whole := map[string]any{"cpu": "3", "memory": "2Gi"}
	c := &scaling.Cluster{Name: "whole", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{
		Name: "bounded", CPU: 1, MaxCPU: 4, Max: 2,
		More: map[string]any{"template.spec.resources": map[string]any{"requests": whole, "limits": whole}},
	}}}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(c.Object().YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	// Of what it finds, some are errors, which end it with another code than 0.
	if says, err := rig.Output(t.Context(), "check", file); !strings.Contains(says, "RF118") {
		t.Errorf("rayfit check does not say RF118: %s (%v)", says, err)
	}
	if !full() {
		return // scaling takes more than a minute, and is tried where RAYFIT_LONG is set
	}

	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	d := drive(t, w, c)
	do(t, d, `hold("three", 3, num_cpus=1)`)
	until(t, w, "three tasks work", func() error { return w.TaskGate.AtWork(batch(*c, "three"), 3) })
	until(t, w, "one pod has grown to its bound", func() error {
		pods := w.Workers(*c, "")
		if len(pods) != 1 {
			return fmt.Errorf("%d workers are there", len(pods))
		}
		if cpu := pods[0].Get("status.containerStatuses[0].resources.limits.cpu"); cpu != "3" {
			return fmt.Errorf("its container has %v CPUs", cpu)
		}
		return nil
	})
	first := w.Workers(*c, "")[0]
	do(t, d, `hold("fourth", 1, num_cpus=1)`)
	until(t, w, "the fourth task works", func() error { return w.TaskGate.AtWork(batch(*c, "fourth"), 1) })
	if task := w.TaskGate.Tasks(batch(*c, "fourth"))[0]; task.Pod == first.Name() {
		t.Errorf("the fourth task works on %s, which has three CPUs", task.Pod)
	}
	pod, err := w.Pod(first.Name())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"spec.containers[0].resources.limits.cpu": "3", "spec.resources.limits.cpu": "3", "status.resources.limits.cpu": "3",
	} {
		if got := pod.Get(path); got != want {
			t.Errorf("%s is %v instead of %v", path, got, want)
		}
	}
	noneRefused(t, w, *c)
	none(t, w, *c, d, "three", "fourth")

	raised := &scaling.Cluster{Name: "raised", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{
		Name: "raised", CPU: 1, MaxCPU: 4, Max: 2,
		More: map[string]any{"template.spec.resources": map[string]any{
			"requests": map[string]any{"cpu": "1500m", "memory": "1Gi"},
			"limits":   map[string]any{"cpu": "4", "memory": "1Gi"},
		}},
	}}}
	d = drive(t, w, raised)
	do(t, d, `hold("stays", 1, num_cpus=1)`)
	until(t, w, "a task works", func() error { return w.TaskGate.AtWork(batch(*raised, "stays"), 1) })
	do(t, d, `hold("more", 3, num_cpus=1)`)
	until(t, w, "three more work", func() error { return w.TaskGate.AtWork(batch(*raised, "more"), 3) })
	until(t, w, "both levels have grown", func() error {
		// With a request of four the pod would become Guaranteed, and Kubernetes refuses that.
		return levels(w, *raised, 4000, 3999)
	})
	w.TaskGate.Release(batch(*raised, "more"))
	do(t, d, `drop("more")`)
	until(t, w, "both levels are small again", func() error { return levels(w, *raised, 1000, 1500) })
	noneRefused(t, w, *raised)
	none(t, w, *raised, d, "stays")
}

// levels says whether the only worker's container was given a limit, and its pod a
// request, both in thousandths of a CPU.
func levels(w *scaling.World, c scaling.Cluster, limit, request float64) error {
	pods := w.Workers(c, "")
	if len(pods) != 1 {
		return fmt.Errorf("%d workers are there", len(pods))
	}
	for path, want := range map[string]float64{
		"status.containerStatuses[0].resources.limits.cpu": limit,
		"spec.resources.requests.cpu":                      request,
		"status.resources.requests.cpu":                    request,
		"spec.resources.limits.cpu":                        4000,
	} {
		if got := thousandths(pods[0].Get(path)); got != want {
			return fmt.Errorf("%s is %vm instead of %vm", path, got, want)
		}
	}
	return nil
}

// thousandths of a CPU that a quantity says: the API server keeps it as it was
// written, with a suffix or with decimals. Without one it is not a number.
func thousandths(quantity any) float64 {
	text, _ := quantity.(string)
	digits, suffixed := strings.CutSuffix(text, "m")
	amount, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil:
		return math.NaN()
	case suffixed:
		return amount
	}
	return math.Round(amount * 1000)
}

func noneRefused(t *testing.T, w *scaling.World, c scaling.Cluster) {
	t.Helper()
	for _, event := range w.Events(c.Name) {
		if strings.Contains(event, "Resize") && !strings.HasPrefix(event, "Resized") {
			t.Errorf("a resize was asked for that could not be: %s", event)
		}
	}
}
