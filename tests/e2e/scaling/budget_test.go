package scaling_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestBudgetHolds has two tenants in namespaces of their own, whose pods grow in
// place, within one budget of a RayPolicy, and two replicas of the controller that
// share them. Each gets half of what there is where both want all, and what the other
// gives back; and at no moment their pods have more than the budget: not when a replica
// is killed, and not when the record of what is granted is deleted.
func TestBudgetHolds(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	second := s.control(t, s.proxy)
	const (
		shared = 8   // CPUs for workers
		heads  = 2.9 // CPUs for both heads with their autoscalers, and less than one more
	)
	budget := func(cpus float64) {
		policy(t, s.World, "shared", fmt.Sprintf(`{match: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [budget-a, budget-b]}]}}, reconcile: {mode: central, allowedModes: [central], budget: {cpu: "%g"}}}`, cpus))
	}
	budget(heads)
	a, b := s.sharer(t, "budget-a"), s.sharer(t, "budget-b")
	most := watchUse(t, shared+heads, a, b)

	for _, one := range []*sharer{a, b} {
		one.ray.Ask(shared, small)
		until(t, one.World, "it is said that a budget keeps demand waiting", func() error {
			return one.Said(one.c.Name, "CannotFit", "the budget of RayPolicy shared leaves too little")
		})
	}
	budget(shared + heads)
	// The record is new, and grants nothing until all have said what they use.
	a.gets(t, "half while both want more", shared/2)
	b.gets(t, "half while both want more", shared/2)
	b.ray.Finish()
	a.gets(t, "what the other has given back", shared)

	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	b.ray.Ask(shared, small)
	a.ray.Finish()
	b.gets(t, "what the other has given back", shared)

	kubectlAt(t, s, "delete", "lease", "rayfit-budget-shared", "--namespace=rayfit-system")
	a.ray.Ask(shared, small)
	until(t, s.World, "the record is made anew", func() error {
		_, err := s.Lab.Request(t.Context(), http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/rayfit-system/leases/rayfit-budget-shared", nil)
		return err
	})
	b.ray.Finish()
	a.gets(t, "what the other has given back", shared)
	t.Logf("at most %g of %g CPUs were in use", most(), shared+heads)
	for _, one := range []*sharer{a, b} {
		if killed := one.ray.Killed(); len(killed) > 0 {
			t.Errorf("%s: pods %v were deleted at their work", one.Namespace, killed)
		}
	}
}

// settled is how long anything may take of which a new record of a budget is a part.
const settled = 4*time.Minute + scaling.Patience

// sharer is a tenant whose cluster shares a budget with that of another one.
type sharer struct {
	*stage
	c   scaling.Cluster
	ray *playgcs.Cluster
}

func (s *stage) sharer(t *testing.T, namespace string) *sharer {
	t.Helper()
	own := s.in(t, namespace)
	c := scaling.Cluster{Name: "ray", Mode: scaling.Central, Idle: 2, Groups: []scaling.Group{{Name: "grow", CPU: 1, Max: 20, MaxCPU: 4}}}
	scalingtest.Create(t, own.World, &c)
	ray := own.played(c)
	until(t, own.World, "the cluster of "+namespace+" is looked after", func() error { return asked(ray) })
	return &sharer{own, c, ray}
}

// gets waits until the workers of a cluster have room for a number of tasks, and no more.
func (s *sharer) gets(t *testing.T, what string, cpus int) {
	t.Helper()
	err := s.UntilWithin(t.Context(), settled, s.Namespace+" gets "+what, func() error {
		room := 0.0
		for _, pod := range s.Workers(s.c, "") {
			room += s.ray.Total(pod.Name(), "CPU")
		}
		if room != float64(cpus) {
			return fmt.Errorf("its workers have %g CPUs instead of %d", room, cpus)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// watchUse fails the test as soon as the pods of some clusters have more CPUs than a
// budget, and returns the most that they had.
func watchUse(t *testing.T, budget float64, sharers ...*sharer) (most func() float64) {
	t.Helper()
	var mu sync.Mutex
	var peak float64
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			used := 0.0
			for _, one := range sharers {
				used += one.used()
			}
			mu.Lock()
			// What is no number is no less.
			if !(used <= max(peak, budget+0.001)) {
				t.Errorf("%g CPUs are in use, of %g", used, budget)
			}
			peak = max(peak, used)
			mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { close(stop); watching.Wait() })
	return func() float64 { mu.Lock(); defer mu.Unlock(); return peak }
}

// used is how many CPUs the pods of a cluster ask for or have, until they are gone.
func (s *sharer) used() float64 {
	all := s.EverWorkers(s.c, "")
	if head, err := s.Head(s.c); err == nil {
		all = append(all, head)
	}
	used := 0.0
	for _, pod := range all {
		if pod.Gone.IsZero() {
			used += max(cpus(pod, "spec.containers"), cpus(pod, "status.containerStatuses"))
		}
	}
	return used
}

// cpus is the sum of what containers request.
func cpus(pod scaling.Seen, list string) float64 {
	sum := 0.0
	containers, _ := pod.Get(list).([]any)
	for i := range containers {
		if asked := pod.Get(fmt.Sprintf("%s[%d].resources.requests.cpu", list, i)); asked != nil {
			sum += thousandths(asked) / 1000
		}
	}
	return sum
}
