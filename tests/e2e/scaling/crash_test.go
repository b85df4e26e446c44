package scaling_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"testing"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// crashes are the points at which the controller is killed: the moments before
// and after each of its effects.
var crashes = []struct {
	name  string
	plant func(w *faultyCluster, kill func())
	quick bool // tried whether RAYFIT_LONG is set or not
}{
	{"before workers are asked for", api(clusterPath, `/replicas"`, false), false},
	{"after workers were asked for", api(clusterPath, `/replicas"`, true), true},
	{"before a pod is resized", api(resizePath, "", false), false},
	{"after a pod was resized", api(resizePath, "", true), true},
	{"before a pod is annotated", api(podPath, "ippr-status", false), false},
	{"after a pod was annotated", api(podPath, "ippr-status", true), false},
	{"before the raylet is resized", ray("ResizeRayletResourceInstances", false), false},
	{"after the raylet was resized", ray("ResizeRayletResourceInstances", true), false},
	{"before a node is drained", ray("DrainNode", false), false},
	{"after a node was drained", ray("DrainNode", true), true},
	{"before workers are named for deletion", api(clusterPath, `workersToDelete.*-worker-`, false), false},
	{"after workers were named for deletion", api(clusterPath, `workersToDelete.*-worker-`, true), false},
}

var (
	clusterPath = regexp.MustCompile(`/rayclusters/[^/]+$`)
	resizePath  = regexp.MustCompile(`/pods/[^/]+/resize$`)
	podPath     = regexp.MustCompile(`/pods/[^/]+$`)
)

// faultyCluster is what the points lie in.
type faultyCluster struct {
	*stage
	c scaling.Cluster
}

func api(path *regexp.Regexp, body string, after bool) func(*faultyCluster, func()) {
	return func(w *faultyCluster, kill func()) {
		f := faulty.Fault{Method: http.MethodPatch, Path: path, Body: regexp.MustCompile(body), Times: 1}
		if after {
			f.After, f.CutAfter = kill, true
		} else {
			f.Before, f.CutBefore = kill, true
		}
		w.proxy.Inject(f)
	}
}

func ray(method string, after bool) func(*faultyCluster, func()) {
	return func(w *faultyCluster, kill func()) {
		var once sync.Once
		w.played(w.c).OnCall(func(called string, isAfter bool) {
			if called == method && isAfter == after {
				once.Do(kill)
			}
		})
	}
}

// TestKilledBetweenTwoEffects kills the controller at each of the points, in a
// cluster of its own, and starts it again: the end is as if nothing had been.
func TestKilledBetweenTwoEffects(t *testing.T) {
	s := played(t)
	controller := s.control(t, s.proxy)
	killedAtEach(t, s, "crash", scaling.Central, func(*testing.T, scaling.Cluster) victim { return controller })
}

// TestSidecarKilledBetweenTwoEffects does the same to the scaler in a head pod.
func TestSidecarKilledBetweenTwoEffects(t *testing.T) {
	s := played(t)
	killedAtEach(t, s, "side", scaling.Sidecar, func(t *testing.T, c scaling.Cluster) victim { return s.sidecar(t, c) })
}

// killedAtEach kills a scaler at each of the points that are to be tried.
func killedAtEach(t *testing.T, s *stage, name string, mode scaling.Mode, start func(*testing.T, scaling.Cluster) victim) {
	t.Helper()
	for i, crash := range crashes {
		if !full() && !crash.quick {
			continue
		}
		t.Run(crash.name, func(t *testing.T) {
			killedAt(t, s, crash.plant, fmt.Sprintf("%s-%d", name, i), mode, func(c scaling.Cluster) victim { return start(t, c) })
		})
	}
}

// victim is a scaler that can be killed and started again.
type victim interface {
	Kill() error
	Restart(ctx context.Context) error
}

// killedAt lets a cluster live whose scaler is killed at a point, once.
func killedAt(t *testing.T, s *stage, plant func(*faultyCluster, func()), name string, mode scaling.Mode, start func(scaling.Cluster) victim) {
	t.Helper()
	c := scaling.Cluster{Name: name, Mode: mode, Idle: 2, Groups: []scaling.Group{
		{Name: "grow", CPU: 1, Min: 1, Max: 8, MaxCPU: 4},
	}}
	scalingtest.Create(t, s.World, &c)
	scaler := start(c)
	faultyCluster := &faultyCluster{s, c}
	until(t, s.World, "the first worker has joined", func() error { return joined(s.played(c), 2) })
	killed := make(chan struct{})
	plant(faultyCluster, func() {
		if err := scaler.Kill(); err != nil {
			t.Error(err)
		}
		close(killed)
		s.Notify()
	})
	scaleUpAndDown(t, faultyCluster, 2, func() {
		select {
		case <-killed:
			killed = nil
			if err := scaler.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
		}
	})
	if killed != nil {
		t.Error("the point was never reached")
	}
	s.played(c).OnCall(nil)
}

func joined(played *playgcs.Cluster, nodes int) error {
	if n := played.Nodes(); n != nodes {
		return fmt.Errorf("%d nodes instead of %d", n, nodes)
	}
	return nil
}

// lifeOf asks for more than a pod can grow to, waits until all of it is placed,
// ends it, and waits until the cluster is at its minimum and settled. There are
// never more workers than most; two can do. revive is called at every look.
func scaleUpAndDown(t *testing.T, r *faultyCluster, most int, revive func()) {
	t.Helper()
	const tasks = 6
	r.played(r.c).Ask(tasks, map[string]float64{"CPU": 1})
	until(t, r.World, "all tasks have a node", func() error {
		revive()
		if n := r.played(r.c).Waiting(); n > 0 {
			return fmt.Errorf("%d tasks wait", n)
		}
		return nil
	})
	until(t, r.World, "pods and Ray agree on their size", func() error {
		revive()
		for _, pod := range r.Workers(r.c, "") {
			wanted, actual := size(pod)
			if told := r.played(r.c).Total(pod.Name(), "CPU"); wanted != actual || fmt.Sprint(told) != actual {
				return fmt.Errorf("pod %s is to have %s CPUs, has %s, and Ray knows %v", pod.Name(), wanted, actual, told)
			}
		}
		return nil
	})
	r.played(r.c).Finish()
	until(t, r.World, "the cluster is at rest again", func() error {
		revive()
		return atRest(r)
	})
	if killed := r.played(r.c).Killed(); len(killed) > 0 {
		t.Errorf("pods %v were deleted at their work", killed)
	}
	if made := r.Made(r.c, ""); made > most {
		t.Errorf("%d workers were made instead of 2", made)
	}
}

// atRest: one worker, asked for as one, and nothing left to delete.
func atRest(r *faultyCluster) error {
	if err := r.HasWorkers(r.c, "", 1); err != nil {
		return err
	}
	object, err := r.RayCluster(r.c)
	if err != nil {
		return err
	}
	if n := object.Get("spec.workerGroupSpecs[0].replicas"); n != 1.0 {
		return fmt.Errorf("replicas is %v", n)
	}
	if left, _ := object.Get("spec.workerGroupSpecs[0].scaleStrategy.workersToDelete").([]any); len(left) > 0 {
		return fmt.Errorf("workersToDelete is %v", left)
	}
	return joined(r.played(r.c), 2)
}

// TestRefusals has the API server refuse what the controller writes, in turn and
// at random places, and come back.
func TestRefusals(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	every := func(status int, reason string) []faulty.Fault {
		var all []faulty.Fault
		for _, path := range []*regexp.Regexp{clusterPath, resizePath, podPath} {
			all = append(all, faulty.Fault{Method: http.MethodPatch, Path: path, Times: 2, Status: status, Reason: reason, RetryAfter: 1})
		}
		return all
	}
	cut := func(after bool) []faulty.Fault {
		return []faulty.Fault{{Method: http.MethodPatch, Times: 3, CutAfter: after, CutBefore: !after}}
	}
	brief := map[string]bool{"409": true, "500": true, "cut after": true, "late": true}
	for name, faults := range map[string][]faulty.Fault{
		"409":                every(http.StatusConflict, "Conflict"),
		"429":                every(http.StatusTooManyRequests, "TooManyRequests"),
		"500":                every(http.StatusInternalServerError, "InternalError"),
		"503":                every(http.StatusServiceUnavailable, "ServiceUnavailable"),
		"cut before":         cut(false),
		"cut after":          cut(true),
		"late":               {{Method: http.MethodPatch, Times: 3, Delay: slow}},
		"watches are ending": {{Method: http.MethodGet, Times: 5, CutBefore: true}},
	} {
		if !full() && !brief[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := scaling.Cluster{Name: "refused-" + regexp.MustCompile(`\W+`).ReplaceAllString(name, "-"), Mode: scaling.Central, Idle: 2,
				Groups: []scaling.Group{{Name: "grow", CPU: 1, Min: 1, Max: 8, MaxCPU: 4}}}
			scalingtest.Create(t, s.World, &c)
			r := &faultyCluster{s, c}
			until(t, s.World, "the first worker has joined", func() error { return joined(r.played(r.c), 2) })
			for _, f := range faults {
				defer s.proxy.Inject(f)()
			}
			// A pod that could not be resized may be given a neighbour.
			scaleUpAndDown(t, r, 3, func() {})
		})
	}
}
