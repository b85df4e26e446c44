package admission_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// large fills an object up to a size in bytes, with many groups and long texts.
// API servers take 3 MiB; etcd stores half of that.
func large(cluster rig.Object, size int) rig.Object {
	const groups = 100
	text := strings.Repeat("x", size/groups-len(cluster.JSON())/2)
	for index := 1; index <= groups; index++ {
		group := rig.WorkerGroup(fmt.Sprintf("g%d", index))
		cluster.Set(fmt.Sprintf("spec.workerGroupSpecs[%d]", index), group).
			Set(fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers[0].env", index),
				[]any{map[string]any{"name": "TEXT", "value": text}})
	}
	last := fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers[0].env[0].value", groups)
	missing := size - len(cluster.JSON())
	return cluster.Set(last, text[:max(0, len(text)+min(missing, 0))]+strings.Repeat("y", max(0, missing)))
}

// request sends an object without kubectl, whose own limits would come first.
func request(t *testing.T, method, path string, object rig.Object) (rig.Object, error) {
	t.Helper()
	raw, err := shared.Lab.Request(t.Context(), method, path, object.JSON())
	if err != nil {
		return nil, err
	}
	var answer rig.Object
	return answer, json.Unmarshal(raw, &answer)
}

func TestAnObjectOfTheLargestSizeIsJudgedAndDefaulted(t *testing.T) {
	ns := namespace(t)
	path := "/apis/ray.io/v1/namespaces/" + ns + "/rayclusters"
	cluster := large(rig.RayCluster(ns, "large"), 2_900_000)

	stored, err := request(t, http.MethodPost, path+"?dryRun=All", cluster)
	if err != nil {
		t.Fatal(err)
	}
	has(t, stored, "spec.autoscalerOptions.idleTimeoutSeconds", 60.0)

	_, err = request(t, http.MethodPost, path+"?dryRun=All", tooMany(cluster))
	if err == nil || !strings.Contains(err.Error(), "RF201") {
		t.Errorf("a bad one of %d bytes: %v", len(cluster.JSON()), err)
	}
}

// Comparing two large objects must not be too dear for the API server: then it
// would pass them unjudged.
func TestAnUpdateToTheLargestSizeIsJudgedAndDefaulted(t *testing.T) {
	ns := namespace(t)
	path := "/apis/ray.io/v1/namespaces/" + ns + "/rayclusters"
	stored, err := request(t, http.MethodPost, path, large(rig.RayCluster(ns, "large"), 1_200_000))
	if err != nil {
		t.Fatal(err)
	}
	update := large(rig.RayCluster(ns, "large"), 2_900_000).
		Set("metadata.resourceVersion", stored.Get("metadata.resourceVersion"))

	after, err := request(t, http.MethodPut, path+"/large?dryRun=All", update)
	if err != nil {
		t.Fatal(err)
	}
	has(t, after, "spec.autoscalerOptions.idleTimeoutSeconds", 60.0)

	_, err = request(t, http.MethodPut, path+"/large?dryRun=All", tooMany(update))
	if err == nil || !strings.Contains(err.Error(), "RF201") {
		t.Errorf("a bad update to %d bytes: %v", len(update.JSON()), err)
	}
	noMatchConditionHasFailed(t)
}

// noMatchConditionHasFailed reads the API server's own count.
func noMatchConditionHasFailed(t *testing.T) {
	t.Helper()
	text, err := shared.Lab.Request(t.Context(), http.MethodGet, "/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	samples := rig.ParseMetrics(string(text))
	if samples.Sum("apiserver_admission_match_condition_evaluation_seconds_count") == 0 {
		t.Error("the API server counts no match conditions at all: is the metric's name still the same?")
	}
	if errors := samples.Sum("apiserver_admission_match_condition_evaluation_errors_total"); errors != 0 {
		t.Errorf("%v match conditions have failed", errors)
	}
}
