package scaling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestDriversHearTheSidecar: what the sidecar does is printed by Ray in drivers,
// as what Ray's own autoscaler does.
func TestDriversHearTheSidecar(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	c := &scaling.Cluster{Name: "heard", Mode: scaling.Sidecar, Idle: 60, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 1}},
		SidecarUser: rig.Object{"runAsUser": 0, "runAsGroup": 0}}
	d := driven(t, w, c, w.DriveAloud)
	do(t, d, `hold("one", 1, num_cpus=1)`)
	until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "one"), 1) })
	until(t, w, "the driver says what was done", func() error {
		said := d.Said()
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, "Adding 1 node(s) of type cpu.") }) {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	// A driver that connects prints what stands there, even if it is empty.
	wrong, err := d.Eval(t.Context(), `from ray.experimental.internal_kv import _internal_kv_get; value = _internal_kv_get("__autoscaling_error")`)
	if err != nil {
		t.Fatal(err)
	}
	if wrong != "None" {
		t.Errorf("drivers are told %s although nothing is wrong", wrong)
	}
}
