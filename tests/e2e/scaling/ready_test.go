package scaling_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// rayBegun is when Ray has long begun in a pod that is ready.
const rayBegun = 10 * time.Second

// TestRoomIsKeptReady has policies ask for headroom, and for workers at certain hours: they are there
// before any demand, stay beyond their idle timeout, make way for others when demand takes
// them, and go when nobody asks for them any more. Where RAYFIT_LONG is set, what policies
// say reaches sidecars, too.
func TestRoomIsKeptReady(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	inEachMode(t, w, scaling.Central, func(t *testing.T, mode scaling.Mode) {
		const idleTimeout = 10
		c := &scaling.Cluster{Name: "ready-" + string(mode), Mode: mode, Idle: idleTimeout, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 3}}}
		d := drive(t, w, c)
		match := `match: {kinds: [RayCluster], names: ["` + c.Name + `"]}`
		workers := func(count int, why string) scaling.Seen {
			t.Helper()
			within(t, w, fmt.Sprintf("%d workers: %s", count, why), func() error { return w.HasWorkers(*c, "cpu", count) })
			pods := w.Workers(*c, "cpu")
			if len(pods) == 0 {
				return scaling.Seen{}
			}
			return pods[0]
		}

		headroom := "headroom-" + string(mode)
		policy(t, w, headroom, `{`+match+`, reconcile: {headroom: {cpus: 1}}}`)
		workers(1, "headroom")
		until(t, w, "the worker is ready", func() error {
			for _, pod := range w.Workers(*c, "cpu") {
				if !pod.Ready.IsZero() {
					return nil
				}
			}
			return errors.New("it is not")
		})
		kept := workers(1, "headroom")
		until(t, w, "the worker has been idle for twice its timeout", func() error {
			if idle := time.Since(kept.Ready); idle < 2*idleTimeout*time.Second+rayBegun {
				return fmt.Errorf("it has been ready for %s", idle)
			}
			return nil
		})
		if again := workers(1, "headroom outlasts the idle timeout"); again.Name() != kept.Name() {
			t.Errorf("worker %s went, although headroom needs it, and %s came", kept.Name(), again.Name())
		}
		if mode == scaling.Central {
			until(t, w, "it is said what it is for", func() error { return w.Said(c.Name, "ScaledUp", "headroom") })
		}
		asked := time.Now()
		do(t, d, `hold("burst", 1, num_cpus=1)`)
		until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "burst"), 1) })
		task := w.TaskGate.Tasks(batch(*c, "burst"))[0]
		t.Logf("the task began after %s", task.Began.Sub(asked).Round(time.Millisecond))
		if task.Pod != kept.Name() {
			t.Errorf("the task runs on %s, and not on %s, which was kept for it", task.Pod, kept.Name())
		}
		workers(2, "new headroom beside the work")
		kubectl(t, w, "delete", "rayp", headroom)
		workers(1, "only the one that works")
		none(t, w, *c, d, "burst")

		// The next full minute but one: the policy has arrived by then.
		begin := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
		hours := fmt.Sprintf(`{name: shift, start: "%d %d * * *", durationSeconds: 60, timeZone: UTC, minReplicas: {cpu: 1}}`, begin.Minute(), begin.Hour())
		policy(t, w, "hours-"+string(mode), `{`+match+`, reconcile: {schedules: [`+hours+`]}}`)
		shift := workers(1, "its hours")
		if early := begin.Sub(shift.First); early > 0 {
			t.Errorf("worker %s was made %s before its hours", shift.Name(), early)
		}
		workers(0, "its hours are over")
		// Counted from when the hours begin: the worker comes with the next round after that.
		if end := begin.Add(time.Minute); time.Now().Before(end) {
			t.Errorf("the worker went %s before its hours were over", time.Until(end))
		}
	})
}
