package karpenter_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/scaling"
)

// saving is the disruption of a NodePool that Karpenter keeps as small as it can.
const saving = `{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 2s, budgets: [{nodes: "100%"}]}`

// What may be done in all, whichever machine Karpenter begins with: the work of two
// workers moves twice at the most, from the first machine to the second, and from
// there to a smaller one, and wherever it is a pod grows and shrinks again.
const (
	mostEvictions = 4
	mostResizes   = 2 * (2 + mostEvictions)
)

// shrinking is a cluster whose pods grow from two CPUs to eight and shrink again,
// on machines that Karpenter consolidates.
type shrinking struct {
	c       *scaling.Cluster
	ray     *playgcs.Cluster
	retried *int // of the tasks that were lost, how many have begun again
}

// TestShrinkingAndConsolidation has two workers that have grown to a machine each.
// They shrink to the task that each of them keeps, and both would fit on one smaller
// machine. Karpenter leaves them alone as long as they are marked. Then it takes
// their machines away, until there is nothing more to save. What is idle goes in
// the end, and its machine with it.
func TestShrinkingAndConsolidation(t *testing.T) {
	t.Parallel()
	nodePool(t, "saved", 0, saving, "lab-8")
	policy(t, "saved", `{match: {kinds: [RayCluster], names: [saved]}, reconcile: {holdBusyNodes: true, inPlace: {shrinkAfterSeconds: 3, keepSmallSeconds: 0}}}`)
	c := &scaling.Cluster{Name: "saved", Mode: scaling.Central, Idle: 10, Groups: []scaling.Group{
		in("saved", scaling.Group{Name: "grow", CPU: 2, MaxCPU: 8, Max: 6}),
	}}
	s := shrinking{c, begin(t, c), new(int)}
	s.growTwo(t)
	s.keepOneTaskEach(t)
	s.held(t)
	s.letGo(t)
	s.nothingIsLeft(t)
}

// growTwo has two workers grow to eight CPUs, each on a machine of its own.
func (s shrinking) growTwo(t *testing.T) {
	t.Helper()
	for workers := 1; workers <= 2; workers++ {
		s.ray.Ask(8, map[string]float64{"CPU": 1})
		until(t, fmt.Sprintf("eight tasks run in worker %d", workers), func() error { return placed(s.ray) })
		if err := shared.HasWorkers(*s.c, "", workers); err != nil {
			t.Fatal(err)
		}
	}
	s.sized(t, "8")
}

// keepOneTaskEach ends all tasks but one of each worker, and waits until both have
// shrunk to what it needs.
func (s shrinking) keepOneTaskEach(t *testing.T) {
	t.Helper()
	s.ray.Finish()
	for _, worker := range shared.Workers(*s.c, "") {
		s.ray.Ask(1, map[string]float64{"CPU": 2, "node:" + fmt.Sprint(worker.Get("status.podIP")): 0.01})
	}
	s.sized(t, "2")
}

// sized waits until every worker has so many CPUs, by its spec, its kubelet and Ray.
func (s shrinking) sized(t *testing.T, cpu string) {
	t.Helper()
	until(t, "every worker has "+cpu+" CPUs", func() error {
		for _, pod := range shared.Workers(*s.c, "") {
			wanted := fmt.Sprint(pod.Get("spec.containers[0].resources.limits.cpu"))
			actual := fmt.Sprint(pod.Get("status.containerStatuses[0].resources.limits.cpu"))
			if told := fmt.Sprint(s.ray.Total(pod.Name(), "CPU")); wanted != cpu || actual != cpu || told != cpu {
				return fmt.Errorf("%s is to have %s CPUs, has %s, and Ray knows %s", pod.Name(), wanted, actual, told)
			}
		}
		return nil
	})
}

// held lets Karpenter have smaller machines, which it does not take while the
// workers are marked.
func (s shrinking) held(t *testing.T) {
	t.Helper()
	kubectl(t, "patch", "nodepool", "saved", "--type=json", `--patch=[{"op":"replace","path":"/spec/template/spec/requirements/0/values","value":["lab-2","lab-4","lab-8"]}]`)
	for _, worker := range shared.Workers(*s.c, "") {
		if mark := worker.Get("metadata.annotations[karpenter.sh/do-not-disrupt]"); mark != "true" {
			t.Errorf("the mark of %s is %v", worker.Name(), mark)
		}
	}
	before := nodeClaims(t, "saved")
	if after := s.lookedThrough(t); !maps.Equal(before, after) || len(before) != 2 {
		t.Errorf("the machines were %v and are %v, though their pods are marked", before, after)
	}
	if n := s.evictions(t); n != 0 {
		t.Errorf("%d pods were evicted that are marked", n)
	}
}

// letGo takes the marks back, and waits until Karpenter finds nothing more to save:
// room for what is evicted was asked for while it still ran.
func (s shrinking) letGo(t *testing.T) {
	t.Helper()
	begun, before := time.Now(), nodeClaims(t, "saved")
	old := shared.Workers(*s.c, "")
	change(t, "saved", `{"reconcile":{"holdBusyNodes":false}}`)
	labtest.Eventually(t, scaling.Patience, "a machine goes", func() error {
		s.retry()
		if claims := nodeClaims(t, "saved"); maps.Equal(before, claims) {
			return fmt.Errorf("the machines are %v", claims)
		}
		return nil
	})
	for after := map[string]string{}; !maps.Equal(before, after); {
		before = nodeClaims(t, "saved")
		after = s.lookedThrough(t)
	}
	if err := placed(s.ray); err != nil {
		t.Error(err)
	}
	t.Logf("%s after the marks were no longer wanted: %s", since(begun, time.Now()), s.counts(t))
	if left := shared.Workers(*s.c, ""); len(before) != 1 || slices.Contains(slices.Collect(maps.Values(before)), "lab-8") || len(left) > 2 {
		t.Errorf("there are %d workers on the machines %v: two workers of two CPUs need one of four", len(left), before)
	}
	for _, worker := range old {
		if now, err := shared.Pod(worker.Name()); err != nil || now.Gone.IsZero() {
			continue // it was on the machine that the other one came to
		}
		for _, reason := range []string{"NodeLeaves", "Draining"} {
			if err := shared.Said(s.c.Name, reason, worker.Name()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := shared.Said(s.c.Name, "ScaledUp", "which is about to leave"); err != nil {
		t.Error(err)
	}
	if n := s.evictions(t); n < 1 || n > mostEvictions {
		t.Errorf("%d pods were evicted, not 1 to %d", n, mostEvictions)
	}
}

// retry begins the tasks again whose worker has gone, as Ray does.
func (s shrinking) retry() {
	if lost := len(s.ray.Killed()); lost > *s.retried {
		s.ray.Ask(lost-*s.retried, map[string]float64{"CPU": 2})
		*s.retried = lost
	}
}

// lookedThrough waits until Karpenter has looked for something to save in all the
// machines that there are, and returns these.
func (s shrinking) lookedThrough(t *testing.T) map[string]string {
	t.Helper()
	labtest.Eventually(t, scaling.Patience, "Karpenter may consolidate all machines", func() error {
		s.retry()
		return allClaims(t, "saved", "Consolidatable")
	})
	// A look that has begun before does not count.
	begin := looks(t)
	labtest.Eventually(t, scaling.Patience, "Karpenter looks at them", func() error {
		s.retry()
		if n := looks(t) - begin; n < 2 {
			return fmt.Errorf("it has looked %v times", n)
		}
		return nil
	})
	return nodeClaims(t, "saved")
}

// nothingIsLeft ends all work, and waits until the workers have gone, and the
// machines after them.
func (s shrinking) nothingIsLeft(t *testing.T) {
	t.Helper()
	begun, before := time.Now(), s.evictions(t)
	s.ray.Finish()
	until(t, "no worker is left", func() error { return shared.HasWorkers(*s.c, "", 0) })
	workers := time.Now()
	labtest.Eventually(t, scaling.Patience, "no machine is left", func() error {
		if claims := nodeClaims(t, "saved"); len(claims) > 0 {
			return fmt.Errorf("the NodeClaims are %v", claims)
		}
		return nil
	})
	t.Logf("the workers had gone %s after the end of all work, and the machines after %s: %s", since(begun, workers), since(begun, time.Now()), s.counts(t))
	if n := s.evictions(t) - before; n != 0 {
		t.Errorf("%d idle pods were evicted", n)
	}
	if n := len(s.calls(t, "patch", "pods/resize")); n < 4 || n > mostResizes {
		t.Errorf("pods were resized %d times, not 4 to %d", n, mostResizes)
	}
}

// counts tells what was done to the pods of the cluster so far.
func (s shrinking) counts(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%d workers made, %d resizes, %d evictions, %d tasks lost",
		shared.Made(*s.c, ""), len(s.calls(t, "patch", "pods/resize")), s.evictions(t), len(s.ray.Killed()))
}

// evictions are the pods that were evicted; of one Karpenter may ask again.
func (s shrinking) evictions(t *testing.T) int {
	t.Helper()
	evicted := map[string]bool{}
	for _, call := range s.calls(t, "create", "pods/eviction") {
		evicted[call.Name] = true
	}
	return len(evicted)
}

// calls are the requests about the cluster's pods that were granted.
func (s shrinking) calls(t *testing.T, verb, object string) []scaling.Call {
	t.Helper()
	found, err := scaling.Calls(shared.Lab, time.Time{}, func(c scaling.Call) bool {
		return c.Status < 300 && c.Verb == verb && c.Object == object && strings.HasPrefix(c.Name, s.c.Name+"-")
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
