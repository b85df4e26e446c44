package admission_test

import (
	"errors"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

const (
	queueLabel        = "kueue.x-k8s.io/queue-name"
	elasticAnnotation = "kueue.x-k8s.io/elastic-job"
)

// What Kueue writes when a queue has room for a cluster, and when it takes the
// room away again (Kueue, raycluster_controller.go: RunWithPodSetsInfo and
// RestorePodSetsInfo). Kueue is played here; e2e/kueue has the real one.
const (
	released = `[{"op": "replace", "path": "/spec/suspend", "value": false},
		{"op": "add", "path": "/spec/headGroupSpec/template/spec/nodeSelector", "value": {"pool": "research"}},
		{"op": "add", "path": "/spec/workerGroupSpecs/0/template/spec/nodeSelector", "value": {"pool": "research"}}]`
	evicted = `[{"op": "replace", "path": "/spec/suspend", "value": true},
		{"op": "remove", "path": "/spec/headGroupSpec/template/spec/nodeSelector"},
		{"op": "remove", "path": "/spec/workerGroupSpecs/0/template/spec/nodeSelector"}]`
)

func queued(cluster rig.Object) rig.Object {
	return cluster.Set("metadata.labels["+queueLabel+"]", "research").Set("metadata.annotations["+elasticAnnotation+"]", "true")
}

// Kueue's webhook suspends what has a queue, whichever of the two is asked
// first; what Kueue writes later passes, and Rayfit adds nothing to it.
func TestWhatKueueDoesToAClusterPasses(t *testing.T) {
	suspends := change(func(rig.Object) map[string]any { return map[string]any{"/spec/suspend": true} })
	hasQueue := map[string]any{"matchExpressions": []any{map[string]any{"key": queueLabel, "operator": "Exists"}}}
	ns := namespace(t)
	for _, name := range []string{"a-before-rayfit", "zz-after-rayfit"} {
		t.Run(name, func(t *testing.T) {
			suspends.asWebhook(t, name, hasQueue)
			cluster := queued(growing(ns, name))
			labtest.Eventually(t, timeout, "wait until the other webhook is in effect", func() error {
				stdout, said, err := run(t, cluster, "create", "--dry-run=server", "-o", "json")
				if err == nil && parsed(t, stdout).Get("spec.suspend") != true {
					err = errors.New("it is not suspended: " + said)
				}
				return err
			})
			lacks(t, accepted(t, cluster), "Warning")
			follows(t, cluster)
		})
	}
}

// Kueue must not be kept from starting and stopping what was there before Rayfit.
func TestKueueMovesAClusterWithOldFaults(t *testing.T) {
	old := queued(tooMany(rig.RayCluster(namespace(t), "old"))).Set("spec.suspend", true)
	beforeRayfit(t, old)
	for _, write := range []string{released, evicted, released} {
		on(t, old, "patch", "--type=json", "--patch", write)
	}
	has(t, stored(t, old), "spec.suspend", false)
}

// follows lets Kueue start and stop a cluster, and looks at what is stored.
func follows(t *testing.T, cluster rig.Object) {
	t.Helper()
	got := stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "spec.suspend", true)
	has(t, got, "metadata.generation", 1.0)

	on(t, cluster, "patch", "--type=json", "--patch", released)
	got = stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "spec.suspend", false)
	has(t, got, "spec.workerGroupSpecs[0].template.spec.nodeSelector.pool", "research")
	has(t, got, "metadata.generation", 2.0)

	on(t, cluster, "patch", "--type=json", "--patch", evicted)
	got = stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "spec.suspend", true)
	has(t, got, "spec.workerGroupSpecs[0].template.spec.nodeSelector", nil)
	has(t, got, "metadata.generation", 3.0)
}
