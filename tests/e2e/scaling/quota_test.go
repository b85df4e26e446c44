package scaling_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// quotaRoom is how many CPUs a quota leaves for workers beside the heads.
const quotaRoom = 4

// TestQuotaHolds has two clusters in one namespace whose ResourceQuota leaves
// room for half of their tasks: the quota holds for pods that are made and for
// pods that grow, both refusals are told, and what one cluster gives back the
// other one uses.
func TestQuotaHolds(t *testing.T) {
	w := startWorld(t, growthLab)
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	makes := &scaling.Cluster{Name: "makes", Mode: scaling.Central, Idle: 5, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 8}}}
	grows := &scaling.Cluster{Name: "grows", Mode: scaling.Central, Idle: 5, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 8, MaxCPU: 4}}}
	makesDriver, growsDriver := drive(t, w, makes), drive(t, w, grows)
	limitCPUs(t, w, quotaRoom)

	do(t, makesDriver, `hold("first", 3, num_cpus=1)`)
	until(t, w, "pods are made", func() error { return w.TaskGate.AtWork(batch(*makes, "first"), 3) })
	do(t, growsDriver, `hold("first", 1, num_cpus=1)`)
	until(t, w, "the last room is taken", func() error { return w.TaskGate.AtWork(batch(*grows, "first"), 1) })

	// Neither a pod nor growth is possible any more.
	do(t, makesDriver, `hold("second", 1, num_cpus=1)`)
	do(t, growsDriver, `hold("second", 2, num_cpus=1)`)
	until(t, w, "KubeRay is refused a pod", func() error { return w.Said(makes.Name, "Problem", "KubeRay cannot make its pods") })
	until(t, w, "growth is refused", func() error { return w.Said(grows.Name, "ResizeRefused", "exceeded quota") })

	begun := time.Now()
	w.TaskGate.Release(batch(*makes, "first"))
	until(t, w, "what was freed is used", func() error {
		if err := w.TaskGate.AtWork(batch(*makes, "second"), 1); err != nil {
			return err
		}
		return w.TaskGate.AtWork(batch(*grows, "second"), 2)
	})
	t.Logf("what was freed after %d s of idle time was at work %s after its tasks had ended", makes.Idle, time.Since(begun).Round(time.Millisecond))
	for _, c := range []*scaling.Cluster{makes, grows} {
		told := map[string]int{}
		for _, event := range w.Events(c.Name) {
			// What follows says when it is tried again.
			event, _, _ = strings.Cut(event, ";")
			if strings.HasPrefix(event, "Problem: ") || strings.HasPrefix(event, "ResizeRefused: ") {
				told[event]++
			}
		}
		for event, times := range told {
			if times > 1 {
				t.Errorf("%s was told %d times: %s", c.Name, times, event)
			}
		}
	}
}

// limitCPUs makes a quota that leaves as much room beside what is requested now.
func limitCPUs(t *testing.T, w *scaling.World, room int) {
	t.Helper()
	const object = `apiVersion: v1
kind: ResourceQuota
metadata: {name: cpus, namespace: %s}
spec: {hard: {requests.cpu: %q}}
`
	set := func(hard string) {
		if _, _, err := w.Lab.Apply(fmt.Sprintf(object, w.Namespace, hard)); err != nil {
			t.Fatal(err)
		}
	}
	set("1000")
	used := 0
	until(t, w, "the quota is counted", func() error {
		out, _, err := w.Lab.Kubectl("get", "resourcequota", "cpus", "-n", w.Namespace, `-o=jsonpath={.status.used.requests\.cpu}`)
		if err != nil {
			return err
		}
		milli, isMilli := strings.CutSuffix(out, "m")
		if used, err = strconv.Atoi(milli); !isMilli {
			used *= 1000
		}
		return err
	})
	set(fmt.Sprintf("%dm", used+1000*room))
}
