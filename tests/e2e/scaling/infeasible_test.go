package scaling_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestInfeasible asks pods to grow whose kubelets can never do it: that is said,
// taken back, and the demand is met by another pod.
func TestInfeasible(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", CPUManager: "static", Ray: true})
	inEachMode(t, w, scaling.Sidecar, func(t *testing.T, mode scaling.Mode) {
		c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 3600, Groups: []scaling.Group{{Name: "fixed", CPU: 1, Max: 2, MaxCPU: 2}}}
		d := drive(t, w, c)
		do(t, d, `hold("first", 1, num_cpus=1)`)
		until(t, w, "a task works", func() error { return w.TaskGate.AtWork(batch(*c, "first"), 1) })
		pod := w.Workers(*c, "")[0].Name()
		do(t, d, `hold("second", 1, num_cpus=1)`)
		until(t, w, "both tasks work", func() error { return w.TaskGate.AtWork(batch(*c, "second"), 1) })
		if there := len(w.Workers(*c, "")); there != 2 {
			t.Errorf("%d workers are there for two tasks", there)
		}
		until(t, w, "the resize is taken back", func() error { return atBase(w, pod) })
		until(t, w, "the pod says why", func() error { return noted(w, pod, "infeasible for Guaranteed Pods") })
		if mode == scaling.Central {
			until(t, w, "it is said", func() error { return w.Said(c.Name, "ResizeInfeasible", pod) })
		}
		none(t, w, *c, d, "first", "second")
	})
}
