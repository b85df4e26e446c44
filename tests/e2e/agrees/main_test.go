// Package agrees_test holds `rayfit simulate` against the real thing: the scripts
// of tests/fixtures/simulate/agrees are played with real Ray, KubeRay's operator,
// scheduler and kubelets, and the same has to be done as in the simulation, in the
// same order, and within a tolerance at the same times.
//
// What the simulation does is in the files NAME.events beside the scripts; the test
// simulate_agrees (tests/core) holds the simulator to them and writes them.
// All scripts are played where RAYFIT_LONG is set, and some otherwise: those that
// RAYFIT_SCRIPTS=NAME,... names, or the usual ones.
package agrees_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

const nodes = 2

// stage is a lab with real Ray, and a controller behind a proxy that can make the
// API server refuse.
type stage struct {
	*scaling.World
	proxy *faulty.Proxy
}

// TestSimulatorAgrees plays the scripts, in a cluster each: first those that change
// the nodes, one after the other, then the others, some at once.
func TestSimulatorAgrees(t *testing.T) {
	common, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := readScripts()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, common)
	for _, one := range scripts {
		if !chosen(one.name) {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			if !one.changesNodes() {
				t.Parallel()
			}
			if tenant := one.tenant(); tenant != "" {
				s.in(t, tenant).run(t, one, common)
				return
			}
			s.run(t, one, common)
		})
	}
}

// usual are the scripts that are played where nothing else is asked for: pods made
// and removed, and a pod that grows and shrinks.
const usual = "burst,growth"

// chosen says whether a script is to be played.
func chosen(name string) bool {
	names := os.Getenv("RAYFIT_SCRIPTS")
	if names == "" && os.Getenv("RAYFIT_LONG") != "" {
		return true
	}
	if names == "" {
		names = usual
	}
	return slices.Contains(strings.Split(names, ","), name)
}

func start(t *testing.T, common settings) *stage {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, lab.Options{
		Nodes: nodes, Cores: common.NodeCores, Memory: fmt.Sprintf("%dGi", memoryPerCore*common.NodeCores), Ray: true,
		With: []string{lab.WithOperator}, OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false"}, RayfitBinary: binary,
	})
	proxy, err := faulty.Start(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	scalingtest.Control(t, l, proxy.URL)
	policy := fmt.Sprintf(`apiVersion: rayfit.dev/v1alpha1
kind: RayPolicy
metadata: {name: agrees}
spec: {reconcile: {inPlace: {keepSmallSeconds: %d, shrinkAfterSeconds: %d}}}
`, common.KeepSmallSeconds, common.ShrinkAfterSeconds)
	if _, _, err := l.Apply(policy); err != nil {
		t.Fatal(err)
	}
	return &stage{observe(t, l, scaling.Namespace), proxy}
}

func observe(t *testing.T, l *lab.Lab, namespace string) *scaling.World {
	t.Helper()
	// Not the test's context, which ends before its clusters do.
	w, err := scaling.ObserveIn(context.Background(), l, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// in is the stage in a namespace of a tenant's own, which ends with its test.
func (s *stage) in(t *testing.T, namespace string) *stage {
	t.Helper()
	if _, _, err := s.Lab.Kubectl("create", "namespace", namespace); err != nil {
		t.Fatal(err)
	}
	err := lab.Eventually(t.Context(), scaling.Patience, "pods can be made in namespace "+namespace, func() error {
		_, err := s.Lab.Request(t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{observe(t, s.Lab, namespace), s.proxy}
}

// attempts is how often a script is played at most.
const attempts = 3

// run plays a script and holds what was done against what the simulator does. Where
// Ray does not start in a pod in the 30 seconds that it gives itself, which happens on
// a machine that is too busy, another pod is made, which is not in the script: then
// the script is played once more.
func (s *stage) run(t *testing.T, one script, common settings) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		seen, err := s.play(t.Context(), one, common, attempt)
		var late *neverStarted
		if errors.As(err, &late) && attempt < attempts {
			t.Logf("played again, because of what was done in the first %v: %v", time.Since(seen.begin).Round(time.Second), err)
			t.Log(sideBySide(one.events, seen.events))
			continue
		}
		if err != nil {
			t.Error(err)
		}
		if seen == nil {
			return
		}
		t.Logf("simulated and done:\n%s", sideBySide(one.events, seen.events))
		for _, difference := range differences(one.events, seen.events, common.of(one)) {
			t.Error(difference)
		}
		return
	}
}
