package rig_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

func TestPathsReachMapsListsAndKeysWithDots(t *testing.T) {
	cluster := rig.WithGrowth(rig.RayCluster("default", "a"))
	original := cluster.Clone()
	cluster.Set("spec.workerGroupSpecs[1]", rig.WorkerGroup("gpu")).
		Set("spec.workerGroupSpecs[0].labels[example.com/zone]", "b").
		Remove("metadata.annotations[ray.io/ippr]")

	for path, want := range map[string]any{
		"spec.workerGroupSpecs[1].groupName":                "gpu",
		"spec.workerGroupSpecs[0].labels[example.com/zone]": "b",
		"spec.workerGroupSpecs[0].maxReplicas":              4.0,
		"spec.workerGroupSpecs[2]":                          nil,
		"metadata.annotations[ray.io/ippr]":                 nil,
		"metadata.name.first":                               nil,
	} {
		if got := cluster.Get(path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	if original.Get("spec.workerGroupSpecs[1]") != nil || original.Get("metadata.annotations[ray.io/ippr]") == nil {
		t.Errorf("a clone follows its original: %s", original.JSON())
	}
}

func TestMetricsAreSummedOverTheLabelsThatAreNotNamed(t *testing.T) {
	samples := rig.ParseMetrics(`# HELP calls Calls
calls_total{webhook="mutate",kind="RayJob"} 1
calls_total{webhook="mutate",kind="RayCluster"} 2
calls_total{webhook="validate",kind="RayCluster"} 4 1700000000
calls 8
# EOF`)
	if got := samples.Sum("calls_total", `webhook="mutate"`); got != 3 {
		t.Errorf("mutate = %v of %v", got, samples)
	}
	if got := samples.Sum("calls_total", `kind="RayCluster"`, `webhook="validate"`); got != 4 {
		t.Errorf("validated clusters = %v of %v", got, samples)
	}
	if got := samples.Sum("calls"); got != 8 {
		t.Errorf("calls = %v of %v", got, samples)
	}
}
