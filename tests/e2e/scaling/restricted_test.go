package scaling_test

import (
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestRestrictedToANamespace scales with the rights of Roles only, and touches
// nothing elsewhere.
func TestRestrictedToANamespace(t *testing.T) {
	s := played(t)
	w := s.World
	proxy, err := faulty.Start(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	controller, err := scaling.StartRestricted(t.Context(), s.Lab, proxy.URL, "rayfit-restricted", scaling.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the controller's log:\n%s", scalingtest.Tail(controller.Log(), 40))
		}
		_ = controller.Stop()
	})
	here := scaling.Cluster{Name: "here", Mode: scaling.Central, Idle: 2, Groups: []scaling.Group{
		{Name: "grow", CPU: 1, Min: 1, Max: 8, MaxCPU: 4},
	}}
	twin := here
	if twin.Port, err = lab.HoldPort(); err != nil {
		t.Fatal(err)
	}
	elsewhere := twin.Object().Set("metadata.namespace", "elsewhere").Set("metadata.name", "there")
	kubectlAt(t, s, "create", "namespace", "elsewhere")
	t.Cleanup(func() { kubectlAt(t, s, "delete", "namespace", "elsewhere", "--wait=false") })
	if _, _, err := s.Lab.Apply(string(elsewhere.JSON())); err != nil {
		t.Fatal(err)
	}
	scalingtest.Create(t, w, &here)
	r := &faultyCluster{s, here}
	until(t, w, "the first worker has joined", func() error { return joined(s.played(here), 2) })
	there := s.gcs.Cluster("elsewhere/there")
	until(t, w, "the worker elsewhere has joined", func() error { return joined(there, 2) })
	there.Ask(3, map[string]float64{"CPU": 1})
	scaleUpAndDown(t, r, 3, func() {})
	for _, write := range proxy.Writes() {
		allowed := strings.Contains(write.Path, "/namespaces/"+scaling.Namespace+"/") || strings.Contains(write.Path, "/namespaces/rayfit-restricted/leases")
		if !allowed {
			t.Errorf("%s %s was sent", write.Method, write.Path)
		}
		if write.Status == 403 {
			t.Errorf("%s %s was forbidden", write.Method, write.Path)
		}
	}
	if _, known := there.Calls()["GetClusterResourceState"]; known {
		t.Error("the cluster elsewhere was looked at")
	}
}

func kubectlAt(t *testing.T, s *stage, args ...string) {
	t.Helper()
	if _, _, err := s.Lab.Kubectl(args...); err != nil {
		t.Fatal(err)
	}
}
