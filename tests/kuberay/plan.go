package main

import (
	"regexp"
	"slices"
	"strings"
)

// all are the suites that are run.
var all = []string{"e2eautoscaler", "e2erayjob", "e2erayservice", "e2eincrementalupgrade"}

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
	"TestRayServiceIncrementalUpgrade",
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

// left are the tests, and cases of tests, that are not run.
var left = []remark{
	{
		"e2erayjob", "TestRayJob/RayJob_controller_recreates_the_head_Pod_if_it_is_deleted_while_the_job_is_running",
		"it wants the job to fail with its head; in the lab the next head is ready before the submitter's third try, so the job is submitted again, succeeds, and is waited for until the time is over",
	},
	{"e2erayservice", "TestRayServiceGCSFaultTolerance", "its Redis writes into the volume `/data` that Redis' image declares, and images are only names in the lab"},
	{"e2erayservice", "TestOldHeadPodFailDuringUpgrade", "it keeps requests from a head by the program `iptables` of an ephemeral container's image, and images are only names in the lab"},
	{"e2eincrementalupgrade", "TestRayServiceIncrementalUpgradeWithLocust", "it upgrades under 400 requests a second, for which the lab's machine is too small"},
}

// endsTooSoon is why jobs that the head pod submits may be waited for without end.
const endsTooSoon = "the job begins before the operator finds all pods ready; where it also ends before, which is a matter of the machine's speed, the head pod is not ready any more, and the operator waits for it without end"

// known are the cases that may fail, whoever scales.
var known = []remark{
	{
		"e2erayjob", "TestRayJobRetry/Failing_RayJob_with_SidecarMode_submission_mode",
		endsTooSoon,
	},
	{
		"e2erayjob", "TestRayJobSidecarMode/Failing_RayJob_without_cluster_shutdown_after_finished",
		endsTooSoon,
	},
	{
		"e2erayservice", "TestRayServiceRayClusterDeletionDelaySeconds",
		"it wants the old cluster to be there for ten seconds from when it sees the new one in use; the operator deletes it ten seconds after the change, of which the test may see the status late",
	},
}

func leftOut(suite, test string) string { return why(left, suite, test) }

// casesLeftOut is the pattern for `-test.skip` of the cases of a test that are not run; none if it is empty.
func casesLeftOut(suite, test string) string {
	var patterns []string
	for _, r := range left {
		name, of, has := strings.Cut(r.test, "/")
		if has && r.suite == suite && name == test {
			patterns = append(patterns, "^"+name+"$/^"+regexp.QuoteMeta(of)+"$")
		}
	}
	return strings.Join(patterns, "|")
}

func why(remarks []remark, suite, test string) string {
	for _, r := range remarks {
		if r.suite == suite && (r.test == test || r.test == "") {
			return r.why
		}
	}
	return ""
}

// application is a Serve application that Ray downloads.
type application struct {
	// named is its address in the tests; served is what is there, if that is another one.
	named, served string
	tests         []string
	why           string // another one is served
}

var applications = []application{
	{
		named: "https://github.com/ray-project/serve_workloads/archive/a9f184f4d9ddb7f9a578502ae106470f87a702ef.zip",
		tests: []string{
			"TestStaticRayService",
			"TestAutoscalingRayService",
			"TestRayServiceZeroDowntimeUpgrade",
			"TestRayServiceRayClusterDeletionDelaySeconds",
		},
	},
	{
		named:  "https://github.com/ray-project/test_dag/archive/78b4a5da38796123d9f9ffff59bab2792a043e95.zip",
		served: "https://github.com/ray-project/test_dag/archive/e58e12a051b484b3ce5988685a91d4d0dbc4c1c2.zip",
		tests: []string{
			"TestRayServiceAuthToken",
			"TestRayServiceBecomesReadyBeforeTimeout",
			"TestRayServiceInPlaceUpdate",
			"TestRayServiceIncrementalUpgrade",
			"TestRayServiceIncrementalUpgradeRollback",
			"TestRayServiceManagedBy",
			"TestRedeployRayServe",
			"TestUpdateServeConfigAndRayClusterSpec",
			"TestUpdateServeConfigAndRayClusterSpecWithUpgradeDisabled",
		},
		why: "the version of their Serve application that they name gives handles the option `use_new_handle_api`, which Ray Serve no longer has",
	},
}
