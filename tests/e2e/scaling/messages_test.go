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

// TestDriversHearWhatIsScaled: what is done in either mode is printed by Ray in
// drivers, as what Ray's own autoscaler does.
func TestDriversHearWhatIsScaled(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	inEachMode(t, w, scaling.Sidecar, func(t *testing.T, mode scaling.Mode) { driversHear(t, w, mode) })
}

func driversHear(t *testing.T, w *scaling.World, mode scaling.Mode) {
	c := &scaling.Cluster{Name: "heard-" + string(mode), Mode: mode, Idle: 60, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 1}},
		SidecarUser: rig.Object{"runAsUser": 0, "runAsGroup": 0}}
	d := driven(t, w, c, w.DriveAloud)
	do(t, d, `hold("one", 1, num_cpus=1)`)
	until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "one"), 1) })
	err := w.Until(t.Context(), "the driver says what was done", func() error {
		said := d.Said()
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, "Adding 1 node(s) of type cpu.") }) {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v; %s", err, whereRayLogs(t, d))
	}
	// A driver that connects prints what stands there, even if it is empty.
	wrong, err := d.Eval(t.Context(), `from ray.experimental.internal_kv import _internal_kv_get; value = _internal_kv_get("__autoscaling_error")`)
	if err != nil {
		t.Fatal(err)
	}
	if wrong != "None" {
		t.Errorf("drivers are told %s although nothing is wrong", wrong)
	}
}

// whereRayLogs says what the head's container sees of the folder in which the sidecar leaves its
// messages, and what is mounted there.
func whereRayLogs(t *testing.T, d *scaling.Driver) string {
	seen, err := d.Eval(t.Context(), `import glob; value = (
    glob.glob("/tmp/ray/*"), os.path.realpath("/tmp/ray/session_latest"), glob.glob("/tmp/ray/session_latest/logs/events/*"),
    [line for line in open("/proc/self/mountinfo") if line.split()[4] in ("/tmp", "/tmp/ray")])`)
	if err != nil {
		return "what the head sees of Ray's logs is not known: " + err.Error()
	}
	return "the head sees " + seen
}
