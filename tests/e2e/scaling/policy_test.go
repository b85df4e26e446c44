package scaling_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestPolicyTunesARunningCluster changes by a RayPolicy how a cluster that runs
// is scaled. The pods that it is about never find a node; by itself the
// controller keeps them, as Ray does.
func TestPolicyTunesARunningCluster(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	w := s.World
	var clusters []scaling.Cluster
	for _, name := range []string{"tuned", "untuned"} {
		c := scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "huge", CPU: 1000, Max: 2}}}
		ray := s.begin(t, &c)
		ray.Ask(1, map[string]float64{"CPU": 1000})
		until(t, w, "a worker is asked for", func() error { return w.HasWorkers(c, "", 1) })
		ray.Finish()
		clusters = append(clusters, c)
	}
	tuned, untuned := clusters[0], clusters[1]
	policy(t, w, "tuned", `{match: {kinds: [RayCluster], names: ["tuned"]}, reconcile: {pendingIdleTimeoutSeconds: 1}}`)
	until(t, w, "the worker that nothing needs is given up", func() error { return w.HasWorkers(tuned, "", 0) })
	if err := w.HasWorkers(untuned, "", 1); err != nil {
		t.Errorf("the policy is not about this one: %v", err)
	}
	kubectl(t, w, "delete", "rayp", "tuned")
	s.played(tuned).Ask(1, map[string]float64{"CPU": 1000})
	until(t, w, "a worker is asked for again", func() error { return w.HasWorkers(tuned, "", 1) })
	policy(t, w, "all", `{match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}, reconcile: {pendingIdleTimeoutSeconds: 1}}`)
	until(t, w, "the worker of the other is given up too", func() error { return w.HasWorkers(untuned, "", 0) })
	if err := w.HasWorkers(tuned, "", 1); err != nil {
		t.Errorf("its demand is there: %v", err)
	}
}

// TestPolicyReachesSidecars changes by a RayPolicy how sidecars scale, which may not
// read policies: one whose cluster is in mode sidecar, and one that stands in for
// the controller. Pods that never find a node are given up by that policy only.
func TestPolicyReachesSidecars(t *testing.T) {
	s := played(t)
	w := s.World
	if err := scaling.AllowStandby(t.Context(), s.Lab); err != nil {
		t.Fatal(err)
	}
	proxy, err := faulty.Start(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	controller := s.control(t, proxy)
	const given = `reconcile: {pendingIdleTimeoutSeconds: 1}`
	cluster := func(name string, mode scaling.Mode) scaling.Cluster {
		return scaling.Cluster{Name: name, Mode: mode, Idle: 3600, Groups: []scaling.Group{{Name: "huge", CPU: 1000, Max: 2}}}
	}
	keepsOne := func(c scaling.Cluster) {
		s.played(c).Ask(1, map[string]float64{"CPU": 1000})
		until(t, w, "a worker is asked for", func() error { return w.HasWorkers(c, "", 1) })
		s.played(c).Finish()
	}
	own := cluster("by-its-sidecar", scaling.Sidecar)
	s.begin(t, &own)
	s.sidecar(t, own)
	keepsOne(own)
	policy(t, w, "given-up", `{match: {kinds: [RayCluster], names: ["by-its-sidecar"]}, `+given+`}`)
	until(t, w, "the worker that nothing needs is given up", func() error { return w.HasWorkers(own, "", 0) })
	kubectl(t, w, "delete", "rayp", "given-up")
	until(t, w, "the settings are taken back", func() error { return told(w, own, "{}") })

	lent := cluster("by-its-standby", scaling.Central)
	s.begin(t, &lent)
	if err := s.Patch(t.Context(), lent, annotate("rayfit.dev/standby", "rayfit-system")); err != nil {
		t.Fatal(err)
	}
	sidecar := s.sidecar(t, lent)
	policy(t, w, "given-up-too", `{match: {kinds: [RayCluster], names: ["by-its-standby"]}, `+given+`}`)
	until(t, w, "the settings are written", func() error { return told(w, lent, "pendingIdleTimeoutSeconds") })
	until(t, w, "the sidecar stands by", func() error { return logged(sidecar, "standing by") })
	until(t, w, "the controller renews its heartbeat", func() error {
		_, err := s.Lab.Request(t.Context(), http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/rayfit-system/leases/rayfit-heartbeat", nil)
		return err
	})
	if err := controller.Kill(); err != nil {
		t.Fatal(err)
	}
	keepsOne(lent)
	until(t, w, "the sidecar has the cluster", func() error { return scaledBy(w, lent, scaling.Sidecar) })
	until(t, w, "the stand-in gives the worker up", func() error { return w.HasWorkers(lent, "", 0) })
	// It gives its shards back when it is stopped, so that other tests need not wait for them.
	if err := controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the replica has the cluster again", func() error { return scaledBy(w, lent, scaling.Central) })
}

// told is nil if the settings that are written on a cluster for its sidecar hold a text.
func told(w *scaling.World, c scaling.Cluster, text string) error {
	object, err := w.RayCluster(c)
	if err != nil {
		return err
	}
	if said := fmt.Sprint(object.Get("metadata.annotations[rayfit.dev/settings]")); !strings.Contains(said, text) {
		return fmt.Errorf("they are %s", said)
	}
	return nil
}

// policy makes a RayPolicy, which ends with its test.
func policy(t *testing.T, w *scaling.World, name, spec string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: rayfit.dev/v1alpha1\nkind: RayPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
	if _, _, err := w.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kubectl(t, w, "delete", "rayp", name, "--ignore-not-found") })
}
