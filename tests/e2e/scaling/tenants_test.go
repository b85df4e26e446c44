package scaling_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestTwoTenants lets two tenants of each mode live side by side, in clusters of
// one name, with groups of the same names, on the same nodes, beside pods that
// pretend to be theirs. Each lives through the same days again and again, and has
// to do exactly what a cluster does that has nobody beside it.
func TestTwoTenants(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	// One port for all that are looked at from outside: addresses alone differ.
	// Sidecars share this machine's loopback address, where each needs its own.
	ports := map[scaling.Mode]int{scaling.Central: port}
	both := []scaling.Mode{scaling.Central, scaling.Sidecar}

	alone := map[scaling.Mode]*tenant{}
	t.Run("alone", func(t *testing.T) {
		for _, mode := range both {
			alone[mode] = s.settle(t, "alone-"+string(mode), "alone-"+string(mode), mode, ports[mode])
		}
		atOnce(t, slices.Collect(maps.Values(alone)), func(tn *tenant) error { return tn.live(t, nil) })
		for _, tn := range alone {
			tn.review(t)
		}
	})
	if t.Failed() {
		return
	}

	var tenants []*tenant
	for _, mode := range both {
		first := s.settle(t, "tenant-a-"+string(mode), "ray", mode, ports[mode])
		second := s.settle(t, "tenant-b-"+string(mode), "ray", mode, ports[mode])
		// One grows while the other shrinks.
		second.after = first.halfway
		tenants = append(tenants, first, second)
	}
	beside := addForeignPods(t, s, tenants)
	days := 2
	if full() {
		days = 20
	}
	atOnce(t, tenants, func(tn *tenant) error { return tn.liveFor(t, days, alone[tn.c.Mode]) })
	for _, tn := range tenants {
		tn.review(t)
		if wanted, had := alone[tn.c.Mode].ray.Connections(), tn.ray.Connections(); had != wanted {
			t.Errorf("%s: its GCS was connected to %d times, and alone %d times", tn.Namespace, had, wanted)
		}
	}
	beside.review(t)
}

// phase is a part of a day: what happens to a cluster's tasks, and how many
// workers of each group there have to be in the end.
type phase struct {
	name    string
	happens func(*playgcs.Cluster)
	workers map[string]int
}

var (
	small = map[string]float64{"CPU": 1}
	large = map[string]float64{"CPU": 8}
)

// groups of every tenant. Large tasks fit into the last one only.
func groups() []scaling.Group {
	return []scaling.Group{
		{Name: "kept", CPU: 1, Min: 1, Max: 1},
		{Name: "grow", CPU: 1, Max: 6, MaxCPU: 4},
		{Name: "large", CPU: 8, Max: 3},
	}
}

var day = []phase{
	{"one task more than there is room for", func(ray *playgcs.Cluster) { ray.Ask(2, small) }, map[string]int{"kept": 1, "grow": 1}},
	{"more than a pod can grow to", func(ray *playgcs.Cluster) { ray.Ask(5, small) }, map[string]int{"kept": 1, "grow": 2}},
	{"tasks for another group", func(ray *playgcs.Cluster) { ray.Ask(2, large) }, map[string]int{"kept": 1, "grow": 2, "large": 2}},
	{"that group is idle beside busy ones", func(ray *playgcs.Cluster) { ray.FinishIn("large") }, map[string]int{"kept": 1, "grow": 2}},
	{"all is idle", func(ray *playgcs.Cluster) { ray.Finish() }, map[string]int{"kept": 1}},
}

// tenant is who has a namespace with one cluster in it.
type tenant struct {
	*stage
	c   scaling.Cluster
	ray *playgcs.Cluster
	// after is what its first day waits for, if anything.
	after <-chan struct{}
	// halfway is closed when most of its workers are there for the first time.
	halfway chan struct{}
	once    *sync.Once
	// did is what was so at the end of each phase of its last day.
	did []string
}

// settle makes a tenant, with a cluster that is looked after and at rest.
func (s *stage) settle(t *testing.T, namespace, name string, mode scaling.Mode, port int) *tenant {
	t.Helper()
	own := s.in(t, namespace)
	c := scaling.Cluster{Name: name, Mode: mode, Port: port, Idle: 2, Groups: groups()}
	scalingtest.Create(t, own.World, &c)
	if mode == scaling.Sidecar {
		own.sidecar(t, c)
	}
	tn := &tenant{stage: own, c: c, ray: own.played(c), halfway: make(chan struct{}), once: &sync.Once{}}
	until(t, own.World, "the cluster of "+namespace+" is looked after", func() error { return asked(tn.ray) })
	until(t, own.World, "the cluster of "+namespace+" is at rest", func() error { return tn.hasCome(day[len(day)-1]) })
	return tn
}

// atOnce does something for all tenants at the same time. Parallel tests would be
// no more at a time than there are processors.
func atOnce(t *testing.T, tenants []*tenant, do func(*tenant) error) {
	t.Helper()
	var running sync.WaitGroup
	for _, tn := range tenants {
		running.Go(func() {
			defer tn.once.Do(func() { close(tn.halfway) }) // where it failed before
			if err := do(tn); err != nil {
				t.Errorf("%s: %v", tn.Namespace, err)
			}
		})
	}
	running.Wait()
}

// liveFor lives so many days.
func (tn *tenant) liveFor(t *testing.T, days int, alone *tenant) error {
	if tn.after != nil {
		<-tn.after
	}
	for day := range days {
		if err := tn.live(t, alone); err != nil {
			return fmt.Errorf("day %d: %w", day+1, err)
		}
	}
	t.Logf("%s: %d days, workers %v, %d of them let go", tn.Namespace, days, tn.ever(), len(tn.Named(tn.c)))
	return nil
}

// live lives a day, and notes what is so at the end of each of its phases, which
// has to be what was so for a cluster alone, if one is named.
func (tn *tenant) live(t *testing.T, alone *tenant) error {
	tn.did = nil
	before := tn.ever()
	for i, p := range day {
		p.happens(tn.ray)
		if err := tn.Until(t.Context(), p.name, func() error { return tn.hasCome(p) }); err != nil {
			return err
		}
		did := tn.state(before)
		tn.did = append(tn.did, did)
		if alone == nil {
			t.Logf("%s: %s: %s", tn.Namespace, p.name, did)
		} else if did != alone.did[i] {
			return fmt.Errorf("%s: %s; alone it was: %s", p.name, did, alone.did[i])
		}
		if i == len(day)/2 {
			tn.once.Do(func() { close(tn.halfway) })
		}
	}
	return nil
}

// hasCome is nil when a phase is over: nobody waits, everything agrees on the
// workers and on their sizes, and nothing is under way.
func (tn *tenant) hasCome(p phase) error {
	if n := tn.ray.Waiting(); n > 0 {
		return fmt.Errorf("%d tasks wait", n)
	}
	object, err := tn.RayCluster(tn.c)
	if err != nil {
		return err
	}
	all := 1
	for i, g := range tn.c.Groups {
		wanted := p.workers[g.Name]
		if err := tn.HasWorkers(tn.c, g.Name, wanted); err != nil {
			return err
		}
		path := fmt.Sprintf("spec.workerGroupSpecs[%d].", i)
		if n := object.Get(path + "replicas"); n != float64(wanted) {
			return fmt.Errorf("group %s is to have %v workers instead of %d", g.Name, n, wanted)
		}
		if left, _ := object.Get(path + "scaleStrategy.workersToDelete").([]any); len(left) > 0 {
			return fmt.Errorf("%v of group %s are still to be deleted", left, g.Name)
		}
		for _, pod := range tn.Workers(tn.c, g.Name) {
			wanted, actual := size(pod)
			if told := tn.ray.Total(pod.Name(), "CPU"); wanted != actual || fmt.Sprint(told) != actual {
				return fmt.Errorf("pod %s is to have %s CPUs, has %s, and Ray knows %v", pod.Name(), wanted, actual, told)
			}
		}
		all += wanted
	}
	return joined(tn.ray, all)
}

// state is how many workers there are in each group, how large, and how many were
// made since there had been some number of them.
func (tn *tenant) state(before map[string]int) string {
	var all []string
	for _, g := range tn.c.Groups {
		var sizes []string
		for _, pod := range tn.Workers(tn.c, g.Name) {
			_, actual := size(pod)
			sizes = append(sizes, actual)
		}
		slices.Sort(sizes)
		made := tn.ever()[g.Name] - before[g.Name]
		all = append(all, fmt.Sprintf("%s has %v CPUs, %d made", g.Name, sizes, made))
	}
	return strings.Join(all, "; ")
}

func (tn *tenant) ever() map[string]int {
	ever := map[string]int{}
	for _, g := range tn.c.Groups {
		ever[g.Name] = len(tn.EverWorkers(tn.c, g.Name))
	}
	return ever
}

// review looks back: nobody lost a worker at its work, nobody was told of
// another's nodes, and what went was its own and was let go by its own cluster.
func (tn *tenant) review(t *testing.T) {
	t.Helper()
	if killed := tn.ray.Killed(); len(killed) > 0 {
		t.Errorf("%s: pods %v were deleted at their work", tn.Namespace, killed)
	}
	if strange := tn.ray.Strange(); len(strange) > 0 {
		t.Errorf("%s: its GCS was asked about nodes of others: %v", tn.Namespace, strange)
	}
	owned, err := tn.Owned(tn.c)
	if err != nil {
		t.Error(err)
		return
	}
	named := tn.Named(tn.c)
	own := map[string]bool{}
	for _, pod := range owned {
		own[pod.Name()] = true
		if !pod.Gone.IsZero() && !slices.Contains(named, pod.Name()) {
			t.Errorf("%s: pod %s is gone, and the cluster has never let it go", tn.Namespace, pod.Name())
		}
	}
	for _, name := range named {
		if !own[name] {
			t.Errorf("%s: the cluster has named %s for deletion, which is no pod of its own", tn.Namespace, name)
		}
	}
}
