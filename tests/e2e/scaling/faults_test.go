package scaling_test

import (
	"encoding/json"
	"fmt"
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
const mostTakeover = 12 * time.Second

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
	var victim, heir *faulty.Proxy
	for proxy := range replicas {
		if len(patched(proxy.Writes())) > 0 {
			victim = proxy
		} else {
			heir = proxy
		}
	}
	if victim == nil || heir == nil {
		t.Fatal("both replicas scaled clusters, or neither")
	}
	last := victim.Writes()
	if err := replicas[victim].Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	left := leader(t, s.Lab)
	ask(2)
	took := time.Since(begin).Round(time.Millisecond)
	t.Logf("taken over after %s", took)
	if full() && took > mostTakeover {
		t.Errorf("taken over after %s, later than %s", took, mostTakeover)
	}
	t.Logf("clusters were patched after %s", waits(heir.Writes(), begin))
	for _, write := range heir.Writes() {
		if strings.HasSuffix(write.Path, "/leases/rayfit-leader") && write.Status < 300 && write.At.After(begin) && write.At.Before(left.ends) {
			t.Errorf("the Lease was taken %s before it ended", left.ends.Sub(write.At))
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

// waits are how long after a moment a replica first patched each cluster.
func waits(writes []faulty.Write, begin time.Time) []time.Duration {
	var waited []time.Duration
	for _, first := range patched(writes) {
		waited = append(waited, first.Sub(begin).Round(10*time.Millisecond))
	}
	slices.Sort(waited)
	return waited
}

// lease is who leads, and until when at least.
type lease struct {
	holder string
	ends   time.Time
}

// leader is what the Lease says.
func leader(t *testing.T, l *lab.Lab) lease {
	t.Helper()
	said, _, err := l.Kubectl("get", "lease", "rayfit-leader", "-n", "rayfit-system", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Spec struct {
			HolderIdentity       string
			LeaseDurationSeconds int
			RenewTime            time.Time
		}
	}
	if err := json.Unmarshal([]byte(said), &found); err != nil {
		t.Fatalf("read the Lease: %s", err)
	}
	ends := found.Spec.RenewTime.Add(time.Duration(found.Spec.LeaseDurationSeconds) * time.Second)
	return lease{found.Spec.HolderIdentity, ends}
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
