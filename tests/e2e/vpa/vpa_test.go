// Package vpa_test has the VerticalPodAutoscaler's real updater and admission
// controller beside Ray clusters that Rayfit scales. Its recommender is played:
// tests write recommendations themselves.
package vpa_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// modes in which VerticalPodAutoscalers write, and those in which they do not touch
// pods that run.
var (
	active  = []string{"Recreate", "InPlaceOrRecreate", "InPlace"}
	passive = []string{"Off", "Initial"}
)

// stage is a lab with a cluster of one worker of one CPU, which may grow to four.
type stage struct {
	*scaling.World
	c *scaling.Cluster
}

// TestModes has VerticalPodAutoscalers of all modes for a cluster. They do nothing,
// because KubeRay's definition of RayCluster has no subresource `scale`. Where this
// fails, docs/upgrade.md has to say what they do.
func TestModes(t *testing.T) {
	s := newStage(t)
	worker := s.worker(t)
	for _, mode := range append(active, passive...) {
		s.autoscale(t, mode)
	}
	err := lab.Eventually(t.Context(), scaling.Patience, "the updater has left out all that may write", func() error {
		log, err := s.Lab.Logs(lab.VPAUpdater)
		if err != nil {
			return err
		}
		for _, mode := range active {
			skipped := regexp.MustCompile(`cannot fetch selector" err="unhandled targetRef ray.io/v1 / RayCluster .* vpa="default/` + strings.ToLower(mode) + `"`)
			if !skipped.MatchString(log) {
				return fmt.Errorf("mode %s is not left out", mode)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if now := s.worker(t); now.Name() != worker.Name() || cpu(now) != "1" {
		t.Errorf("%s with %s CPU is %s with %s", worker.Name(), cpu(worker), now.Name(), cpu(now))
	}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, lab.Options{
		Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true, With: []string{lab.WithOperator, lab.WithVPA},
		OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false"}, RayfitBinary: binary,
	})
	w := scalingtest.Observe(t, l)
	if _, err := scaling.StartController(t.Context(), l, ""); err != nil {
		t.Fatal(err)
	}
	s := &stage{World: w, c: &scaling.Cluster{
		Name: "sized", Mode: scaling.Central, Idle: 3600,
		Groups: []scaling.Group{{Name: "cpu", CPU: 1, MaxCPU: 4, Min: 1, Max: 1}},
	}}
	if err := w.Create(t.Context(), s.c); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the worker runs", func() error {
		if workers := w.Workers(*s.c, ""); len(workers) != 1 || workers[0].Get("status.phase") != "Running" {
			return fmt.Errorf("%d workers", len(workers))
		}
		return nil
	})
	return s
}

// autoscale makes a VerticalPodAutoscaler of a mode, named by it, for the cluster,
// and recommends two CPUs.
func (s *stage) autoscale(t *testing.T, mode string) {
	t.Helper()
	name := strings.ToLower(mode)
	s.apply(t, fmt.Sprintf(`apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: "%s", namespace: default}
spec:
  targetRef: {apiVersion: ray.io/v1, kind: RayCluster, name: sized}
  updatePolicy: {updateMode: "%s", minReplicas: 1}
  resourcePolicy: {containerPolicies: [{containerName: ray-worker, controlledResources: [cpu]}]}
`, name, mode))
	s.kubectl(t, "patch", "vpa", name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"recommendation":{"containerRecommendations":[{"containerName":"ray-worker","target":{"cpu":"2"},"lowerBound":{"cpu":"2"},"upperBound":{"cpu":"2"}}]}}}`)
}

func (s *stage) worker(t *testing.T) scaling.Seen {
	t.Helper()
	workers := s.Workers(*s.c, "")
	if len(workers) != 1 {
		t.Fatalf("%d workers instead of one", len(workers))
	}
	return workers[0]
}

func cpu(pod scaling.Seen) string {
	return fmt.Sprint(pod.Get("spec.containers[0].resources.requests.cpu"))
}

func (s *stage) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := s.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if _, _, err := s.Lab.Kubectl(append(args, "-n", s.Namespace)...); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) until(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := s.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}
