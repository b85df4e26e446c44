package scaling_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/scaling"
)

// mostStandby is within how long demand is served that comes as the only replica
// of the controller is lost.
const mostStandby = 20 * time.Second

// loss is a way in which the controller is lost, and comes back.
type loss struct {
	name string
	lose func(t *testing.T, controller *scaling.Controller, proxy *faulty.Proxy) (back func())
}

var losses = []loss{
	{"killed", func(t *testing.T, controller *scaling.Controller, _ *faulty.Proxy) func() {
		if err := controller.Kill(); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := controller.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"frozen", func(t *testing.T, controller *scaling.Controller, _ *faulty.Proxy) func() {
		pid := controller.PID()
		send := func(signal syscall.Signal) {
			if err := syscall.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
		}
		send(syscall.SIGSTOP)
		return func() { send(syscall.SIGCONT) }
	}},
	{"cut-off", func(_ *testing.T, _ *scaling.Controller, proxy *faulty.Proxy) func() {
		reads := proxy.Inject(faulty.Fault{Method: http.MethodGet, CutBefore: true})
		writes := proxy.Inject(faulty.Fault{CutBefore: true})
		return func() { reads(); writes() }
	}},
	{"slow", func(_ *testing.T, _ *scaling.Controller, proxy *faulty.Proxy) func() {
		// Longer than the replica waits for any answer, or trusts its Lease.
		return proxy.Inject(faulty.Fault{Delay: 15 * time.Second})
	}},
}

// TestSidecarStandsIn loses the only replica of the controller in each of these
// ways: the cluster's sidecar serves demand that comes just then, and gives the
// cluster back when the replica is there again. At no moment both write.
func TestSidecarStandsIn(t *testing.T) {
	s := played(t)
	if err := scaling.AllowStandby(t.Context(), s.Lab); err != nil {
		t.Fatal(err)
	}
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			proxy, err := faulty.Start(s.Lab)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Stop)
			c := scaling.Cluster{Name: "standby-" + loss.name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 8}}}
			ray := s.begin(t, &c)
			controller := s.control(t, proxy)
			if err := s.Patch(t.Context(), c, annotate("rayfit.dev/standby", "rayfit-system")); err != nil {
				t.Fatal(err)
			}
			sidecar := s.sidecar(t, c)
			ask := func(by string, workers int) time.Duration {
				begin := time.Now()
				ray.Ask(1, map[string]float64{"CPU": 1})
				until(t, s.World, by+" serves demand", func() error { return s.HasWorkers(c, "", workers) })
				return time.Since(begin).Round(10 * time.Millisecond)
			}
			ask("the replica", 1)
			until(t, s.World, "the replica has the cluster", func() error { return scaledBy(s.World, c, scaling.Central) })
			until(t, s.World, "the sidecar stands by", func() error { return logged(sidecar, "standing by") })
			if written := writesTo(s.proxy, c, time.Time{}); len(written) != 0 {
				t.Errorf("a sidecar that stands by wrote %v", written)
			}

			lost := time.Now()
			back := loss.lose(t, controller, proxy)
			took := ask("the sidecar", 2)
			t.Logf("the sidecar served demand after %s", took)
			if full() && took > mostStandby {
				t.Errorf("demand was served after %s, later than %s", took, mostStandby)
			}
			if err := scaledBy(s.World, c, scaling.Sidecar); err != nil {
				t.Error(err)
			}
			returned := time.Now()
			back()
			until(t, s.World, "the sidecar gives it back", func() error { return scaledBy(s.World, c, scaling.Central) })
			t.Logf("the replica had the cluster again after %s", time.Since(returned).Round(10*time.Millisecond))
			ask("the replica", 3)

			sidecars := writesTo(s.proxy, c, lost)
			if len(sidecars) == 0 {
				t.Fatal("the sidecar wrote nothing")
			}
			first, last := sidecars[0].At, sidecars[len(sidecars)-1].At
			for _, write := range writesTo(proxy, c, lost) {
				if write.At.After(first) && write.At.Before(last) {
					t.Errorf("the replica wrote %s while the sidecar had the cluster", write.Path)
				}
			}
			// What a replica has to say that cannot write may be lost.
			until(t, s.World, "it is announced", func() error { return s.World.Said(c.Name, "SidecarStandsBy", "from outside again") })
		})
	}
}

// logged is nil if a sidecar's log has a text.
func logged(sidecar *scaling.HeadSidecar, text string) error {
	if !strings.Contains(sidecar.Log(), text) {
		return fmt.Errorf("its log does not say %q", text)
	}
	return nil
}

// writesTo are the accepted writes after a moment to a cluster and its pods, but
// for the mark on its head.
func writesTo(proxy *faulty.Proxy, c scaling.Cluster, after time.Time) []faulty.Write {
	var found []faulty.Write
	for _, write := range proxy.Writes() {
		isOf := strings.Contains(write.Path, "/rayclusters/"+c.Name) || strings.Contains(write.Path, "/pods/"+c.Name)
		isMark := strings.Contains(write.Path, "-head") && !strings.HasSuffix(write.Path, "/resize")
		if isOf && !isMark && write.Status < 300 && write.At.After(after) {
			found = append(found, write)
		}
	}
	return found
}
