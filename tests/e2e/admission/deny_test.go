package admission_test

import (
	"encoding/json"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

func parsed(t *testing.T, raw string) rig.Object {
	t.Helper()
	var object rig.Object
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		t.Fatalf("%v in: %s", err, raw)
	}
	return object
}

func TestAnObjectWithSeveralFaultsIsDeniedWithEachOfThemOnce(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "bad").
		Set("metadata.annotations[ray.io/ippr]", "not JSON").
		Set("spec.workerGroupSpecs[0].minReplicas", 9).
		Set("spec.workerGroupSpecs[0].rayStartParams.num-gpus", "0.5")
	said := denied(t, cluster)
	t.Log(said)
	containsOnce(t, said, "RF101", "RF201", "RF204")
}
