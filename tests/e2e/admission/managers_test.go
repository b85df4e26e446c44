package admission_test

import (
	"reflect"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// As where a cluster moves from Argo CD to Flux, or both apply it for a while.
func TestTwoManagersApplyingTheSameKeepTheDefaultsAndTheGeneration(t *testing.T) {
	cluster := growing(namespace(t), "a")
	for range 3 {
		for _, manager := range []string{"argocd-controller", "kustomize-controller"} {
			accepted(t, cluster, "--server-side", "--force-conflicts", "--field-manager="+manager)
			got := stored(t, cluster)
			hasDefaults(t, got)
			has(t, got, "metadata.generation", 1.0)
		}
	}
}

// The second manager owns a part only: a label, and one of the defaulted fields.
func TestASecondManagerOfAPartDoesNotTakeTheDefaultsAway(t *testing.T) {
	cluster := growing(namespace(t), "a")
	whole := []string{"--server-side", "--field-manager=argocd-controller"}
	part := rig.Object{"apiVersion": cluster["apiVersion"], "kind": cluster["kind"]}.
		Set("metadata.name", "a").
		Set("metadata.namespace", cluster.Get("metadata.namespace")).
		Set("metadata.labels.team", "b").
		Set("spec.autoscalerOptions.idleTimeoutSeconds", 60)
	accepted(t, cluster, whole...)
	for range 3 {
		accepted(t, part, "--server-side", "--force-conflicts", "--field-manager=kustomize-controller")
		accepted(t, cluster, whole...)
		got := stored(t, cluster)
		hasDefaults(t, got)
		has(t, got, "metadata.labels.team", "b")
		has(t, got, "metadata.generation", 1.0)
	}
}

// What a GitOps tool shows as a difference is what its dry run would change.
func TestADryRunOfTheSameManifestShowsNoDifference(t *testing.T) {
	cluster := growing(namespace(t), "a")
	again := []string{"--server-side", "--field-manager=argocd-controller"}
	accepted(t, cluster, again...)
	stdout, stderr, err := run(t, cluster, append([]string{"apply", "--dry-run=server", "-o", "json"}, again...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	would, is := parsed(t, stdout), stored(t, cluster)
	for _, path := range []string{"spec", "metadata.generation", "metadata.annotations", "metadata.labels"} {
		if !reflect.DeepEqual(would.Get(path), is.Get(path)) {
			t.Errorf("%s would be %v instead of %v", path, would.Get(path), is.Get(path))
		}
	}
}
