package scaling_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// slow is longer than a request of the controller may take.
const slow = 6 * time.Second

// mostTakeover is within what another replica must have taken over, on a machine
// that does nothing else: where RAYFIT_LONG is set.
const mostTakeover = 15 * time.Second

// TestOneFaultIsNotTheNeighbours: while one object cannot be handled, everything
// else scales as if it were not there.
func TestOneFaultIsNotTheNeighbours(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	w := s.World
	lives := func(t *testing.T, c scaling.Cluster, spoil func(*faultyCluster)) {
		scalingtest.Create(t, w, &c)
		r := &faultyCluster{s, c}
		until(t, w, "the workers have joined", func() error { return joined(s.played(c), 3) })
		spoil(r)
		s.played(c).Ask(6, map[string]float64{"CPU": 1})
		until(t, w, "all tasks have a node", func() error {
			if n := s.played(c).Waiting(); n > 0 {
				return fmt.Errorf("%d tasks wait", n)
			}
			return nil
		})
		if killed := s.played(c).Killed(); len(killed) > 0 {
			t.Errorf("pods %v were deleted at their work", killed)
		}
	}
	two := func(name string) scaling.Cluster {
		return scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
			{Name: "grow", CPU: 1, Min: 1, Max: 4, MaxCPU: 2},
			{Name: "plain", CPU: 1, Min: 1, Max: 8},
		}}
	}
	t.Run("an annotation that is no JSON", func(t *testing.T) {
		lives(t, two("annotation"), func(r *faultyCluster) {
			if err := w.Patch(t.Context(), r.c, annotate("ray.io/ippr", "not JSON")); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("a group that was removed", func(t *testing.T) {
		removed := two("removed")
		lives(t, removed, func(r *faultyCluster) {
			kubectl(t, w, "patch", "raycluster", r.c.Name, "--type=json", `--patch=[{"op":"remove","path":"/spec/workerGroupSpecs/0"}]`)
		})
		s.played(removed).Finish()
		until(t, w, "no worker of it is left", func() error { return w.HasWorkers(removed, "grow", 0) })
	})
	t.Run("a pod that cannot be patched", func(t *testing.T) {
		lives(t, two("unpatchable"), func(r *faultyCluster) {
			pod := w.Workers(r.c, "grow")[0].Name()
			t.Cleanup(s.proxy.Inject(faulty.Fault{Method: http.MethodPatch, Path: regexp.MustCompile("/pods/" + pod), Status: http.StatusForbidden, Reason: "Forbidden"}))
		})
	})
	t.Run("a node without room, as the API server says it", func(t *testing.T) {
		lives(t, two("no-room"), func(r *faultyCluster) {
			t.Cleanup(s.proxy.Inject(faulty.Fault{Method: http.MethodPatch, Path: regexp.MustCompile("/pods/no-room-.*/resize"), Status: http.StatusForbidden, Reason: "Forbidden", Cause: "NodeCapacity"}))
		})
	})
	t.Run("a GCS that is gone", func(t *testing.T) {
		silent := two("silent")
		scalingtest.Create(t, w, &silent)
		ray := s.played(silent)
		until(t, w, "the workers have joined", func() error { return joined(ray, 3) })
		head, err := w.Head(silent)
		if err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("%v:%d", head.Get("status.podIP"), silent.Port)
		s.gcs.Silence(address)
		lives(t, two("neighbour"), func(*faultyCluster) {})
		if err := w.HasWorkers(silent, "", 2); err != nil {
			t.Errorf("of a cluster of which nothing is known: %v", err)
		}
		ray.Ask(3, map[string]float64{"CPU": 1})
		if err := s.gcs.Serve(ray, address); err != nil {
			t.Fatal(err)
		}
		until(t, w, "it is back", func() error {
			if n := ray.Waiting(); n > 0 {
				return fmt.Errorf("%d tasks wait", n)
			}
			return nil
		})
	})
	t.Run("the API server restarts", func(t *testing.T) {
		lives(t, two("restarted"), func(*faultyCluster) {
			if err := w.Lab.RestartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestTakeover kills the replica that scales. The other one takes over, and at
// no moment both wrote.
func TestTakeover(t *testing.T) {
	s := played(t)
	w := s.World
	replicas := map[*faulty.Proxy]*scaling.Controller{}
	for range 2 {
		proxy, err := faulty.Start(s.Lab)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Stop)
		replicas[proxy] = s.control(t, proxy)
	}
	// Until then clusters change hands without a takeover.
	if err := lab.Eventually(t.Context(), scaling.Patience, "the replicas share the shards", func() error { return alike(s.Lab) }); err != nil {
		t.Fatal(err)
	}
	var clusters []scaling.Cluster
	for i := range 8 {
		c := scaling.Cluster{Name: fmt.Sprintf("shared-%d", i), Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 20}}}
		scalingtest.Create(t, w, &c)
		clusters = append(clusters, c)
	}
	ask := func(workers int) {
		for _, c := range clusters {
			s.played(c).Ask(1, map[string]float64{"CPU": 1})
		}
		until(t, w, "each cluster has its workers", func() error {
			for _, c := range clusters {
				if err := w.HasWorkers(c, "", workers); err != nil {
					return fmt.Errorf("%s: %w", c.Name, err)
				}
			}
			return nil
		})
	}
	ask(1)
	shares := map[*faulty.Proxy]int{}
	for proxy := range replicas {
		shares[proxy] = len(patched(proxy.Writes()))
	}
	t.Logf("clusters of each replica: %v", shares)
	var victim, heir *faulty.Proxy
	for proxy := range replicas {
		if victim == nil || shares[proxy] > shares[victim] {
			victim, heir = proxy, victim
		} else {
			heir = proxy
		}
	}
	last := victim.Writes()
	if err := replicas[victim].Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	left := shards(t, s.Lab)
	ask(2)
	took := time.Since(begin).Round(time.Millisecond)
	t.Logf("taken over after %s", took)
	if full() && took > mostTakeover {
		t.Errorf("taken over after %s, later than %s", took, mostTakeover)
	}
	undisturbed, takenOver := waits(heir.Writes(), begin)
	t.Logf("clusters that had the heir already were patched after %s, the others after %s", undisturbed, takenOver)
	if len(undisturbed) != shares[heir] {
		t.Errorf("%d clusters had the heir already, and %d were patched by it before", len(undisturbed), shares[heir])
	}
	for name, now := range shards(t, s.Lab) {
		if now.holder == left[name].holder {
			continue
		}
		for _, write := range heir.Writes() {
			if strings.HasSuffix(write.Path, "/leases/"+name) && write.Status < 300 && write.At.After(begin) && write.At.Before(left[name].ends) {
				t.Errorf("%s was reached for %s before it ended", name, left[name].ends.Sub(write.At))
			}
		}
	}
	if now := patched(heir.Writes()); len(now) != len(clusters) {
		t.Errorf("the heir patched %d of %d clusters", len(now), len(clusters))
	}
	for path, first := range patched(heir.Writes()) {
		if of := patched(last)[path]; !of.IsZero() && first.Before(of) {
			t.Errorf("%s was patched by both: by the heir %s before the other's last", path, of.Sub(first))
		}
	}
}

// waits are how long after a moment a replica first patched each cluster: those
// that it had patched before that moment, and those that it had not.
func waits(writes []faulty.Write, begin time.Time) (had, got []time.Duration) {
	before := map[string]bool{}
	after := map[string]bool{}
	for _, write := range writes {
		if write.Method != http.MethodPatch || !clusterPath.MatchString(write.Path) {
			continue
		}
		if write.At.Before(begin) {
			before[write.Path] = true
			continue
		}
		if after[write.Path] {
			continue
		}
		after[write.Path] = true
		waited := write.At.Sub(begin).Round(10 * time.Millisecond)
		if before[write.Path] {
			had = append(had, waited)
		} else {
			got = append(got, waited)
		}
	}
	return had, got
}

// shard is who holds one of the shards, and until when at least.
type shard struct {
	holder string
	ends   time.Time
}

// shards are those that somebody holds.
func shards(t *testing.T, l *lab.Lab) map[string]shard {
	t.Helper()
	found, err := readShards(l)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readShards(l *lab.Lab) (map[string]shard, error) {
	said, _, err := l.Kubectl("get", "leases", "-n", "rayfit-system", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				HolderIdentity       string
				LeaseDurationSeconds int
				RenewTime            time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		return nil, fmt.Errorf("read the Leases: %w", err)
	}
	found := map[string]shard{}
	for _, lease := range list.Items {
		if spec := lease.Spec; strings.HasPrefix(lease.Metadata.Name, "rayfit-shard-") && spec.HolderIdentity != "" {
			ends := spec.RenewTime.Add(time.Duration(spec.LeaseDurationSeconds) * time.Second)
			found[lease.Metadata.Name] = shard{spec.HolderIdentity, ends}
		}
	}
	return found, nil
}

// alike is nil when each of two replicas holds three of the six shards.
func alike(l *lab.Lab) error {
	found, err := readShards(l)
	if err != nil {
		return err
	}
	held := map[string]int{}
	for _, one := range found {
		held[one.holder]++
	}
	if slices.Equal(slices.Collect(maps.Values(held)), []int{3, 3}) {
		return nil
	}
	return fmt.Errorf("shards are held like this: %v", held)
}

// patched are the RayClusters that were patched, with the moment of the first time.
func patched(writes []faulty.Write) map[string]time.Time {
	found := map[string]time.Time{}
	for _, write := range writes {
		if write.Method == http.MethodPatch && clusterPath.MatchString(write.Path) && found[write.Path].IsZero() {
			found[write.Path] = write.At
		}
	}
	return found
}
