// Package rights_test holds the rights that the manifests grant against what an
// install does with them: it works with exactly these, and uses each of them.
package rights_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

const (
	system   = "rayfit-system"
	accounts = "system:serviceaccount:" + system + ":" // of all of its pods
	patience = 5 * time.Minute
)

// site is a lab in which installs run as pods and scale clusters whose Ray is
// played.
type site struct {
	*scaling.World
	gcs *playgcs.Server
}

func newSite(t *testing.T) *site {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, lab.Options{
		Nodes: 1, Cores: 32, Memory: "64Gi", RayfitBinary: binary, Audit: lab.AuditMetadata,
		With: []string{lab.WithOperator},
		// Nothing of Ray runs in the pods that could be probed or waited for.
		OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false", "ENABLE_INIT_CONTAINER_INJECTION=false"},
	})
	w, err := scaling.Observe(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	ctx, cancel := context.WithCancel(context.Background())
	gcs := playgcs.New(w.Notify)
	go gcs.Follow(ctx, l)
	t.Cleanup(func() { cancel(); gcs.Stop() })
	return &site{w, gcs}
}

// install applies the manifests for some flags, as they are printed, and waits
// until the webhooks answer.
func (s *site) install(t *testing.T, flags ...string) string {
	t.Helper()
	manifests, err := rig.Output(t.Context(), append([]string{"manifests", "--image=rayfit:lab"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Lab.Apply(manifests); err != nil {
		t.Fatal(err)
	}
	s.rolledOut(t)
	labtest.Eventually(t, patience, "the webhooks answer", func() error {
		return is(s.comesTo(faulty("asked")), "denied")
	})
	return manifests
}

// rolledOut waits until all Deployments of an install run.
func (s *site) rolledOut(t *testing.T) {
	t.Helper()
	for _, deployment := range strings.Fields(s.must(t, "get", "deployments", "-n", system, "-o", "name")) {
		s.must(t, "rollout", "status", deployment, "-n", system, "--timeout=90s")
	}
}

func (s *site) must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _, err := s.Lab.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

func (s *site) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := s.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

// comesTo is what becomes of an object that somebody applies.
func (s *site) comesTo(object rig.Object) string {
	cmd := s.Lab.KubectlCommand(context.Background(), "apply", "--dry-run=server", "-f", "-")
	cmd.Stdin = strings.NewReader(object.YAML())
	said, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return "stored"
	case strings.Contains(string(said), "RF201"):
		return "denied"
	}
	return string(said)
}

// faulty is a RayCluster that breaks RF201, which denies by itself.
func faulty(name string) rig.Object {
	return rig.RayCluster(scaling.Namespace, name).
		Set("spec.workerGroupSpecs[0].minReplicas", 9).
		Set("spec.workerGroupSpecs[0].maxReplicas", 3)
}
