package main

import "slices"

// all are the suites that are run.
var all = []string{"e2eautoscaler", "e2erayjob", "e2erayservice"}

// long are the tests with the most cases, or that take longest, which begin first.
var long = []string{
	"TestRayClusterAutoscalerPlacementGroup",
	"TestRayClusterAutoscalerMaxReplicasUpdate",
	"TestRayClusterAutoscalerGCSFT",
	"TestRayClusterAutoscaler",
	"TestDeletionStrategy",
	"TestRayJob",
	"TestRayJobRetry",
	"TestAutoscalingRayService",
}

func longestFirst(tests []string) []string {
	place := func(test string) int {
		if i := slices.Index(long, test); i >= 0 {
			return i
		}
		return len(long)
	}
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b string) int { return place(a) - place(b) })
	return sorted
}

// remark is why a test or a case of it, or all of a suite if none is named, is not run
// or may fail.
type remark struct{ suite, test, why string }

const (
	oldApplication = "its Serve application gives handles the option `use_new_handle_api`, which Ray Serve no longer has"
	noGateway      = "needs a controller for Gateway API, and addresses for its load balancer, which the lab does not have"
)

// left are the tests that are not run.
var left = []remark{
	{"e2erayservice", "TestOldHeadPodFailDuringUpgrade", oldApplication},
	{"e2erayservice", "TestRayServiceAuthToken", oldApplication},
	{"e2erayservice", "TestRayServiceBecomesReadyBeforeTimeout", oldApplication},
	{"e2erayservice", "TestRayServiceGCSFaultTolerance", "its Redis writes into the volume `/data` that Redis' image declares, and images are only names in the lab"},
	{"e2erayservice", "TestRayServiceInPlaceUpdate", oldApplication},
	{"e2erayservice", "TestRayServiceManagedBy", oldApplication},
	{"e2erayservice", "TestRedeployRayServe", oldApplication},
	{"e2erayservice", "TestUpdateServeConfigAndRayClusterSpec", oldApplication},
	{"e2erayservice", "TestUpdateServeConfigAndRayClusterSpecWithUpgradeDisabled", oldApplication},
	{"e2eincrementalupgrade", "", noGateway},
}

// known are the cases that may fail, whoever scales.
var known = []remark{
	{
		"e2erayjob", "TestRayJobRetry/Failing_RayJob_with_SidecarMode_submission_mode",
		"the job begins before the operator finds all pods ready; where it also ends before, which is a matter of the machine's speed, the head pod is not ready any more, and the operator waits for it without end",
	},
	{
		"e2erayservice", "TestRayServiceRayClusterDeletionDelaySeconds",
		"it wants the old cluster to be there for ten seconds from when it sees the new one in use; the operator deletes it ten seconds after the change, of which the test may see the status late",
	},
}

func leftOut(suite, test string) string { return why(left, suite, test) }

func why(remarks []remark, suite, test string) string {
	for _, r := range remarks {
		if r.suite == suite && (r.test == test || r.test == "") {
			return r.why
		}
	}
	return ""
}

// application is the Serve application of some tests, which Ray downloads.
const application = "https://github.com/ray-project/serve_workloads/archive/a9f184f4d9ddb7f9a578502ae106470f87a702ef.zip"

// needApplication are those tests.
var needApplication = []string{
	"TestStaticRayService",
	"TestAutoscalingRayService",
	"TestRayServiceZeroDowntimeUpgrade",
	"TestRayServiceRayClusterDeletionDelaySeconds",
}
