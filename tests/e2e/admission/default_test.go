package admission_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// growing is a cluster whose group grows in place and says nothing of how.
func growing(ns, name string) rig.Object {
	return rig.WithGrowth(rig.RayCluster(ns, name)).
		Remove("spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests")
}

// hasDefaults checks what growing clusters get.
func hasDefaults(t *testing.T, cluster rig.Object) {
	t.Helper()
	const ray = "spec.workerGroupSpecs[0].template.spec.containers[0]"
	for path, want := range map[string]any{
		ray + ".resources.requests.cpu":             "1",
		ray + ".resources.requests.memory":          "2Gi",
		ray + ".resizePolicy[0].restartPolicy":      "NotRequired",
		ray + ".resizePolicy[1].restartPolicy":      "NotRequired",
		ray + ".resizePolicy[2]":                    nil,
		"spec.autoscalerOptions.version":            "v2",
		"spec.autoscalerOptions.idleTimeoutSeconds": 60.0,
		"spec.autoscalerOptions.upscalingMode":      "Default",
	} {
		has(t, cluster, path, want)
	}
}

func TestWhatAGrowingClusterLeavesOutIsFilledIn(t *testing.T) {
	cluster := growing(namespace(t), "a")
	accepted(t, cluster)
	hasDefaults(t, stored(t, cluster))
}

func TestWhatIsWrittenStaysAsItIs(t *testing.T) {
	cluster := growing(namespace(t), "a").
		Set("spec.autoscalerOptions.idleTimeoutSeconds", 7).
		Set("spec.autoscalerOptions.imagePullPolicy", "Always")
	accepted(t, cluster)
	got := stored(t, cluster)
	has(t, got, "spec.autoscalerOptions.idleTimeoutSeconds", 7.0)
	has(t, got, "spec.autoscalerOptions.imagePullPolicy", "Always")
}

// A server-side apply takes away what its manager does not own any more, and
// nothing else: defaults belong to nobody who could leave them out.
func TestServerSideApplyAgainKeepsTheDefaultsAndTheGeneration(t *testing.T) {
	cluster := growing(namespace(t), "a")
	again := []string{"--server-side", "--field-manager=team"}
	accepted(t, cluster, again...)
	accepted(t, cluster, again...)
	got := stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "metadata.generation", 1.0)

	accepted(t, cluster.Set("spec.workerGroupSpecs[0].maxReplicas", 8), again...)
	got = stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "spec.workerGroupSpecs[0].maxReplicas", 8.0)
	has(t, got, "metadata.generation", 2.0)
}

func TestApplyAgainKeepsTheDefaultsAndTheGeneration(t *testing.T) {
	cluster := growing(namespace(t), "a")
	accepted(t, cluster)
	accepted(t, cluster)
	got := stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "metadata.generation", 1.0)

	accepted(t, cluster.Set("spec.workerGroupSpecs[0].maxReplicas", 8))
	hasDefaults(t, stored(t, cluster))
}

// `kubectl replace` sends the object as it is in the file, without defaults.
func TestReplacingWithTheSameFileKeepsTheDefaultsAndTheGeneration(t *testing.T) {
	cluster := growing(namespace(t), "a")
	accepted(t, cluster)
	if _, said, err := run(t, cluster, "replace"); err != nil {
		t.Fatal(err, said)
	}
	got := stored(t, cluster)
	hasDefaults(t, got)
	has(t, got, "metadata.generation", 1.0)
}

// Installing Rayfit must not restart what runs.
func TestAClusterFromBeforeRayfitGetsNoDefaultsFromAnUnrelatedEdit(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "old")
	beforeRayfit(t, cluster)
	accepted(t, cluster.Set("metadata.labels.team", "a").Set("spec.workerGroupSpecs[0].maxReplicas", 5))
	got := stored(t, cluster)
	has(t, got, "spec.workerGroupSpecs[0].maxReplicas", 5.0)
	has(t, got, "spec.autoscalerOptions", nil)
}
