package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// stored are manifests of an earlier version, in which one Deployment did everything.
func stored(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/one-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnUpgradeFromEarlierManifestsAndBackLosesNoCall(t *testing.T) {
	l := cluster(t)
	earlier, now := stored(t), rayfit(t, "manifests", "--self-managed", "--fail-closed", "--replicas=2")
	removeAfter(t, l, now)
	if _, _, err := l.Apply(earlier); err != nil {
		t.Fatal(err)
	}
	object := goodCluster(t)
	answers := func() error { return create(t.Context(), l, object) }
	rolledOut(t, l)
	labtest.Eventually(t, time.Minute, "the webhooks answer", answers)
	readyPods(t, l, 2)

	load := startLoad(t, 4, 40, func(ctx context.Context) error { return create(ctx, l, object) })
	load.underWay(t, 20)
	for _, manifests := range []string{now, earlier, now} {
		load.underWay(t, load.calls.Load()+20)
		if manifests == earlier {
			// As docs/upgrade.md says: it would go on without its rights.
			labtest.Kubectl(t, l, "delete", "deployment/rayfit-controller", "-n", system)
		}
		if _, _, err := l.Apply(manifests); err != nil {
			t.Fatal(err)
		}
		// The pods' template may be the same in both.
		labtest.Kubectl(t, l, "rollout", "restart", "deployment/rayfit", "-n", system)
		rolledOut(t, l)
		readyPods(t, l, 2)
		if _, _, err := l.Apply(example(t, "bad.yaml")); err == nil {
			t.Error("a bad RayCluster was stored")
		}
	}
	load.end(t, "upgrade and downgrade", 100)
	noneForbidden(t, l)
}

// Everything stops while the webhooks fail closed, as when a cluster is shut
// down over night. Nothing that starts it again is a matter of the webhooks.
func TestAFullStopWhileFailingClosedIsRecoveredFrom(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--self-managed", "--fail-closed"))
	readyPods(t, l, 3)
	object := goodCluster(t)

	labtest.Kubectl(t, l, "scale", "deployment/rayfit", "-n", system, "--replicas=0")
	readyPods(t, l, 0)
	if err := l.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, time.Minute, "Ray objects are refused", func() error {
		err := create(t.Context(), l, object)
		if status := new(lab.StatusError); errors.As(err, &status) && strings.Contains(status.Message, "validate.raycluster.rayfit.dev") {
			return nil
		}
		return fmt.Errorf("the answer is: %w", err)
	})
	restarted := time.Now()
	// Nothing else waits for us, in our own namespace neither.
	for _, namespace := range []string{system, team, "kube-system"} {
		const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`
		if _, err := l.Request(t.Context(), http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps?dryRun=All", []byte(body)); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	labtest.Kubectl(t, l, "scale", "deployment/rayfit", "-n", system, "--replicas=3")
	rolledOut(t, l)
	readyPods(t, l, 3)
	trusted(t, l)
	noneForbiddenSince(t, l, restarted)
}

// While no replica is there, whatever the order in which things go.
func TestAnUninstallWhileNothingAnswersLeavesNothingThatBlocks(t *testing.T) {
	l := cluster(t)
	manifests := rayfit(t, "manifests", "--self-managed", "--fail-closed")
	install(t, l, manifests)
	if _, _, err := l.Apply(example(t, "good.yaml")); err != nil {
		t.Fatal(err)
	}
	labtest.Kubectl(t, l, "scale", "deployment/rayfit", "-n", system, "--replicas=0")
	readyPods(t, l, 0)
	labtest.Kubectl(t, l, "delete", "raycluster", "notebook", "-n", team)
	uninstall(t, l, manifests)
	if _, stderr, err := l.Apply(example(t, "bad.yaml")); err != nil {
		t.Errorf("without Rayfit a RayCluster is nobody's business: %s", stderr)
	}
	labtest.Kubectl(t, l, "delete", "raycluster", "notebook", "-n", team)
}
