package scaling_test

import (
	"fmt"
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

// TestPolicyReachesSidecars changes by a RayPolicy how a sidecar scales, which may not
// read policies. Pods that never find a node are given up by that policy only.
func TestPolicyReachesSidecars(t *testing.T) {
	s := played(t)
	w := s.World
	proxy, err := faulty.Start(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	s.control(t, proxy)
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
