package vap_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// Expressions have a limit of cost, beyond which they fail and so judge
// nothing. Much larger clusters than anybody has must stay below it.
const largest = 150

func TestALargeClusterIsJudged(t *testing.T) {
	createNamespace(t, "large")
	groups := largest
	if n, err := strconv.Atoi(os.Getenv("RAYFIT_TEST_GROUPS")); err == nil {
		groups = n
	}
	install(t, rayfit(t, "vap", "--fail-closed"))
	good := withGroups(t, "large", groups)
	if _, err := send(t, fixture{object: good}); err != nil {
		t.Errorf("%d groups: %v", groups, err)
	}
	bad := good.Clone().Set(fmt.Sprintf("spec.workerGroupSpecs[%d].minReplicas", groups-1), 99)
	_, err := send(t, fixture{object: bad})
	isDenied(t, err, "RF201")

	stored, ok := create(t, good, false)
	if !ok {
		t.Fatal("it is not stored")
	}
	for i := range groups {
		stored.Set(fmt.Sprintf("spec.workerGroupSpecs[%d].replicas", i), 2)
	}
	if _, err := send(t, fixture{object: stored, old: stored}); err != nil {
		t.Errorf("an update of %d groups: %v", groups, err)
	}
	noErrors(t)
}

// withGroups is a cluster of which all worker groups grow in place.
func withGroups(t *testing.T, namespace string, count int) rig.Object {
	t.Helper()
	object := rig.WithGrowth(rig.RayCluster(namespace, "a"))
	listed := map[string]any{}
	for i := range count {
		group := rig.WithGrowth(rig.RayCluster(namespace, "a")).Get("spec.workerGroupSpecs[0]")
		object.Set(fmt.Sprintf("spec.workerGroupSpecs[%d]", i), group)
		name := fmt.Sprintf("a-group-with-a-name-%d", i)
		object.Set(fmt.Sprintf("spec.workerGroupSpecs[%d].groupName", i), name)
		listed[name] = map[string]any{"max-cpu": "8", "max-memory": "32Gi", "resize-timeout": 300}
	}
	text, err := json.Marshal(map[string]any{"groups": listed})
	if err != nil {
		t.Fatal(err)
	}
	return object.Set("metadata.annotations[ray.io/ippr]", string(text))
}
