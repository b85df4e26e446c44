package admission_test

import (
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// away stops Rayfit until the test ends.
func stopRayfit(t *testing.T) {
	t.Helper()
	stop(t)
	t.Cleanup(func() {
		if !shared.Lab.Running(shared.Server.Name) {
			start(t)
		}
	})
}

func TestWithoutRayfitObjectsAreStoredUnjudged(t *testing.T) {
	ns := namespace(t)
	stopRayfit(t)
	accepted(t, withFaults(rig.RayCluster(ns, "bad")))
	good := rig.RayCluster(ns, "good")
	accepted(t, good)
	has(t, stored(t, good), "spec.autoscalerOptions", nil)
}

func TestFailingClosedNothingIsStoredUntilRayfitIsBack(t *testing.T) {
	good := rig.RayCluster(namespace(t), "good")
	old := rig.RayCluster(good.Get("metadata.namespace").(string), "old").
		Set("metadata.finalizers", []string{"example.com/guard"})
	accepted(t, old)
	install(t, rig.FailClosed)
	t.Cleanup(func() {
		if err := shared.Install(noDeadline, rig.FailOpen); err != nil {
			t.Error(err)
		}
	})
	stopRayfit(t)

	said := denied(t, good)
	hasOnce(t, said, `failed calling webhook "validate.raycluster.rayfit.dev"`)
	// Deletion and finalizers never wait for us.
	on(t, old, "delete", "--wait=false")
	on(t, old, "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	gone(t, old)

	start(t)
	accepted(t, good)
	has(t, stored(t, good), "spec.autoscalerOptions.idleTimeoutSeconds", 60.0)
}

func TestTheFirstRequestAfterAnAPIServersRestartIsJudged(t *testing.T) {
	ns := namespace(t)
	noMatchConditionHasFailed(t) // its count starts anew
	if err := shared.Lab.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	hasOnce(t, denied(t, tooMany(rig.RayCluster(ns, "bad"))), "rayfit explain RF201")
	good := rig.RayCluster(ns, "good")
	accepted(t, good)
	has(t, stored(t, good), "spec.autoscalerOptions.idleTimeoutSeconds", 60.0)
}

func TestRayfitRestartedUnderTheSameAddressIsAskedAgain(t *testing.T) {
	ns := namespace(t)
	for range 3 {
		restart(t)
		if said := denied(t, tooMany(rig.RayCluster(ns, "bad"))); !strings.Contains(said, "RF201") {
			t.Errorf("kubectl says: %s", said)
		}
	}
}
