package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestMeterIntegratesOverTheTimesAtWhichItSaw(t *testing.T) {
	begin := time.Unix(1000, 0)
	var m meter
	for _, seen := range []struct{ after, cores float64 }{
		{0, 0}, {2, 4}, {2.5, 4}, {10, 1}, {70, 0}, {80, 0},
	} {
		m.see(begin.Add(time.Duration(seen.after*float64(time.Second))), seen.cores)
	}
	// 4 cores from second 2 to 10, 1 core until 70, however seldom it looked.
	if !near(m.sum, 4*8+60) {
		t.Errorf("the integral is %v", m.sum)
	}
}

func TestLimitsAreThoseOfAllContainers(t *testing.T) {
	pod := rig.Object{}.Set("spec", map[string]any{"containers": []any{
		map[string]any{"name": "ray-worker", "resources": map[string]any{"limits": map[string]any{"cpu": "3"}}},
		map[string]any{"name": "beside", "resources": map[string]any{"limits": map[string]any{"cpu": "250m"}}},
		map[string]any{"name": "without"},
	}}).Set("status", map[string]any{"containerStatuses": []any{
		map[string]any{"name": "ray-worker", "restartCount": 2.0}, map[string]any{"name": "beside", "restartCount": 0.0},
	}})
	if sum := limits(pod); !near(sum, 3.25) {
		t.Errorf("limits of 3 and 250m are %v", sum)
	}
	if sum := restarts(pod); sum != 2 {
		t.Errorf("%v restarts", sum)
	}
	if sum := limits(rig.Object{}) + restarts(rig.Object{}); sum != 0 {
		t.Errorf("a pod without anything has %v", sum)
	}
}

func TestFateOfTasksThatCheckIn(t *testing.T) {
	asked := time.Unix(1000, 0)
	at := func(batch string, number int, attempt string, after int) scaling.Task {
		return scaling.Task{Name: fmt.Sprintf("c:%s/%d/%s", batch, number, attempt), Began: asked.Add(seconds(after))}
	}
	begun := []scaling.Task{at("b", 0, "x", 2), at("b", 1, "y", 3), at("b", 1, "z", 20)}
	ended := []scaling.Task{at("b-ended", 0, "x", 8), at("b-ended", 1, "z", 26)}
	got := checked(asked, asked.Add(seconds(100)), 3, begun, ended)
	// The second was tried twice and counts from its first attempt; the third never began.
	if len(got.waits) != 3 || got.waits[0] != 2 || got.waits[1] != 3 || got.waits[2] != 100 {
		t.Errorf("waits %v", got.waits)
	}
	if got.retried != 1 || got.failed != 1 {
		t.Errorf("%v retried, %v failed", got.retried, got.failed)
	}
}

func TestFateOfRequests(t *testing.T) {
	got, err := answers("[0.25, 1.5]", 3)
	if err != nil || len(got.waits) != 2 || got.failed != 1 {
		t.Errorf("two answers of three requests: %+v, %v", got, err)
	}
	if _, err := answers("lost", 3); err == nil {
		t.Error("what is no list passes")
	}
}

func TestOutcomeTellsLaterActsApart(t *testing.T) {
	got := summed([]fate{{waits: []float64{10, 20}, retried: 1}, {waits: []float64{1, 3, 2}, failed: 2, again: true}})
	if !near(got.wait, 7.2) || !near(got.later, 2) || got.retried != 1 || got.failed != 2 {
		t.Errorf("%+v", got)
	}
	if none := summed([]fate{{}}); none.wait != 0 || none.later != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

func TestWritesAreWhatChangesTheCluster(t *testing.T) {
	var calls []scaling.Call
	for _, call := range []string{"get pods", "list pods", "watch pods", "patch rayclusters", "patch pods/resize", "patch pods/resize", "update leases", "create events", "patch nodes/status"} {
		verb, object, _ := strings.Cut(call, " ")
		calls = append(calls, scaling.Call{Verb: verb, Object: object})
	}
	got := written(calls)
	if len(got) != 2 || got["rayclusters"] != 1 || got["pods/resize"] != 2 {
		t.Errorf("%v", got)
	}
	r := results{modes: modes, of: map[scaling.Mode][]figures{
		scaling.Ray:     {{writes: map[string]float64{"rayclusters": 4}, ofAll: 10}},
		scaling.Central: {{writes: got, ofAll: 8}},
		scaling.Sidecar: {{writes: map[string]float64{"rayclusters": 5}, ofAll: 10}},
	}}
	for _, line := range []string{"10 8 (0.80) 10 (1.00)", "4 3 (0.75) 5 (1.25, worse)", "pods/resize 0 2 0", "rayclusters 4 1 5"} {
		said := strings.Join(strings.Fields(r.writes().Aligned()), " ")
		if !strings.Contains(said, line) {
			t.Errorf("%q is not in %s", line, said)
		}
	}
}
