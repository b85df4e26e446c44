package admission_test

import (
	"errors"
	"fmt"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

func TestAFaultFromBeforeRayfitDoesNotStandInTheWayOfOtherEdits(t *testing.T) {
	old := tooMany(rig.RayCluster(namespace(t), "old"))
	beforeRayfit(t, old)

	said := accepted(t, old.Set("spec.rayVersion", "2.60.1"))
	hasOnce(t, said, "Warning: RF201 spec.workerGroupSpecs[name=cpu].minReplicas: 9 is above")

	said = denied(t, old.Clone().Set("spec.workerGroupSpecs[0].rayStartParams.num-gpus", "0.5"))
	hasOnce(t, said, "Warning: RF201 spec", "rayfit explain RF204")
	lacks(t, said, "rayfit explain RF201")
}

func TestAnOldFaultMovesWithItsGroupButNotToAnotherName(t *testing.T) {
	old := tooMany(rig.RayCluster(namespace(t), "old")).Set("spec.workerGroupSpecs[1]", rig.WorkerGroup("second"))
	beforeRayfit(t, old)

	reordered := old.Clone().
		Set("spec.workerGroupSpecs[0]", old.Get("spec.workerGroupSpecs[1]")).
		Set("spec.workerGroupSpecs[1]", old.Get("spec.workerGroupSpecs[0]"))
	hasOnce(t, accepted(t, reordered), "Warning: RF201 spec.workerGroupSpecs[name=cpu].minReplicas: ")

	renamed := reordered.Set("spec.workerGroupSpecs[1].groupName", "renamed")
	hasOnce(t, denied(t, renamed), "(group renamed; rayfit explain RF201)")
}

func TestAnOldFaultThatGotWorseIsDenied(t *testing.T) {
	old := tooMany(rig.RayCluster(namespace(t), "old"))
	beforeRayfit(t, old)
	hasOnce(t, denied(t, old.Set("spec.workerGroupSpecs[0].minReplicas", 10)), "10 is above maxReplicas")
}

func TestAFaultThatWasMendedCannotComeBack(t *testing.T) {
	old := tooMany(rig.RayCluster(namespace(t), "old"))
	beforeRayfit(t, old)
	lacks(t, accepted(t, old.Clone().Set("spec.workerGroupSpecs[0].minReplicas", 1)), "RF201")
	hasOnce(t, denied(t, old), "rayfit explain RF201")
}

func TestAnInvalidObjectCanBeDeletedAndItsFinalizerRemoved(t *testing.T) {
	old := withFaults(rig.RayCluster(namespace(t), "old")).Set("metadata.finalizers", []string{"example.com/guard"})
	beforeRayfit(t, old)

	on(t, old, "delete", "--wait=false")
	on(t, old, "patch", "--type=merge", "-p", `{"metadata":{"labels":{"state":"leaving"}}}`)
	before := calls(t)
	on(t, old, "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	gone(t, old)
	if got := calls(t); got != before {
		t.Errorf("Rayfit was asked %v times about the end of an object", got-before)
	}
}

// KubeRay acts on an object as long as something holds it.
func TestWhatAFinalizerHoldsIsJudgedLikeAnyOther(t *testing.T) {
	held := rig.RayCluster(namespace(t), "held").Set("metadata.finalizers", []string{"example.com/guard"})
	accepted(t, held)
	on(t, held, "delete", "--wait=false")
	hasOnce(t, denied(t, tooMany(held.Clone())), "rayfit explain RF201")
	on(t, held, "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	gone(t, held)
}

func TestANamespaceWithInvalidObjectsCanBeDeleted(t *testing.T) {
	ns := namespace(t)
	var invalid []rig.Object
	for _, object := range allKinds(t, ns) {
		invalid = append(invalid, tooMany(object))
	}
	beforeRayfit(t, invalid...)
	before := calls(t)
	kubectl(t, "delete", "namespace", ns, "--timeout=60s")
	if got := calls(t); got != before {
		t.Errorf("Rayfit was asked %v times about a deletion", got-before)
	}
}

func TestNobodyIsAskedAboutUpdatesThatChangeNothingJudged(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "a")
	accepted(t, cluster, "--server-side")
	before := calls(t)
	unasked := func(what string) {
		t.Helper()
		if got := calls(t); got != before {
			t.Errorf("Rayfit was asked %v times about %s", got-before, what)
			before = got
		}
	}

	on(t, cluster, "patch", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/guard"]}}`)
	on(t, cluster, "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	unasked("finalizers")
	on(t, cluster, "patch", "--subresource=status", "--type=merge", "-p", `{"status":{"state":"ready"}}`)
	unasked("the status")
	accepted(t, cluster, "--server-side")
	unasked("the same object again")
	accepted(t, cluster, "--server-side", "--field-manager=other", "--force-conflicts")
	unasked("another owner of the same fields")

	// The counter does count.
	on(t, cluster, "label", "team=a")
	if calls(t) == before {
		t.Error("Rayfit was not asked about a label")
	}
	noMatchConditionHasFailed(t)
}

// That a scaler changed only its own fields is told by Rayfit, not by the API
// server, to which the comparison would be too dear.
func TestAScalerMaySetReplicasOfAClusterWithFaults(t *testing.T) {
	old := withFaults(rig.RayCluster(namespace(t), "old"))
	beforeRayfit(t, old)
	patch := `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":3},
		{"op":"add","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":["old-cpu-worker-x"]}}]`
	as := "system:serviceaccount:kuberay-system:kuberay-operator"

	_, said, err := shared.Lab.KubectlAs(as, []string{"system:masters"},
		append(append([]string{"patch"}, reference(old)...), "--type=json", "-p", patch)...)
	if err != nil {
		t.Fatal(err)
	}
	lacks(t, said, "RF305")
	has(t, stored(t, old), "spec.workerGroupSpecs[0].replicas", 3.0)

	// The same file again takes the scaler's number back, and says so.
	hasOnce(t, accepted(t, old), "Warning: RF305 spec.workerGroupSpecs[name=cpu].replicas: ")
}

func gone(t *testing.T, object rig.Object) {
	t.Helper()
	labtest.Eventually(t, timeout, "wait until "+object.Name()+" is gone", func() error {
		stdout, _, err := shared.Lab.Kubectl(append([]string{"get", "--ignore-not-found", "-o", "name"}, reference(object)...)...)
		if err == nil && stdout != "" {
			err = errors.New(fmt.Sprint(stdout, "is still there"))
		}
		return err
	})
}
