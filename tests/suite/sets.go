package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// filter says which tests of a package: `go test`'s -run and -skip.
type filter struct{ run, skip string }

// choice is what the short set takes of a package, and what is left of it.
type choice struct {
	folder string
	short  filter
	// rest is empty where nothing is left. Several filters are as many calls of
	// `go test`, which run beside each other.
	rest []filter
}

// scenes of TestGrowth: out, in place, and in again.
const scenes = "^(a_running_pod_grows|a_pod_that_is_still_to_come_will_grow)$"

// waits are tests of e2e/scaling that wait for most of their time, for heads that begin
// anew and for idle times to pass. They are half of what that package takes in the rest,
// and its other half runs meanwhile.
const waits = "^(TestCordonedNode|TestHeadIsReplaced|TestMaximumHolds|TestModesHandOver|TestPodsAreMadeLarge|TestRoomIsKeptReady|TestSeveralHosts)$"

// slow are the tests of e2e/scaling that are left to `make test-long`: each waits for
// minutes, needs a machine on which nobody else computes, or asks what an optimised
// process costs.
const slow = "^(TestAutoscalerMetricsAreThoseOfRay|TestBlockedGroup|TestClustersThatBreathe|TestClustersThatComeAgain|TestFromNothingToMany|TestGangsThatMeet|" +
	"TestGracefulEnd|TestGrowthBesideOthers|TestGrowthRunsFaster|TestIdleClustersEnd|TestLargeCluster|TestManyClusters|TestMemoryInUse|TestNodeLeaves|" +
	"TestSidecarKilledBetweenTwoEffects|TestThereAndBackFromRay)$"

// needLab are the lab's own tests that start one.
const needLab = "^(TestAdmissionOnly|TestGatewaysRouteByWeight|TestInterruptedStartLeavesNothing|TestPodIsAProcess|TestPodsHaveNetworks)$"

// chosen is what `make test` runs with a real API server: what a person with
// kubectl meets, policies, and for each mode a cluster of real Ray that scales
// out, grows in place and scales in, and two tenants that must not meet. Of
// packages that are not named here, those in e2e are left to `make test-all`,
// new ones too, and the others, which take no time, are part of both.
//
// In the order in which they begin: the longest first.
var chosen = []choice{
	{
		"e2e/scaling",
		filter{run: "^TestGrowth$/^(central|sidecar)$/" + scenes + "|^TestTwoTenants$|^TestPlanOfALiveCluster$"},
		[]filter{
			{run: waits},
			{skip: slow + "|" + waits + "|^TestGrowth$/^(central|sidecar)$/" + scenes + "|^TestTwoTenants$|^TestPlanOfALiveCluster$"},
		},
	},
	{"e2e/admission", filter{}, nil},
	{"e2e/policy", filter{}, nil},
	{"lab", filter{skip: needLab}, []filter{{run: needLab}}},
}

// longest are the packages of the rest that are to begin first, so that all ends at about the same time.
var longest = []string{"e2e/scaling", "e2e/install", "e2e/kuberay", "e2e/vap", "lab", "e2e/walk"}

// long are the packages of which all is left to `make test-long`: they need the
// minutes of a machine that does nothing else.
var long = []string{"e2e/agrees", "e2e/karpenter", "e2e/kueue", "e2e/libraries", "e2e/rayservice"}

// job is a call of `go test`: a package, and which of its tests.
type job struct {
	folder string
	filter
	// part is "" where the set has one call for the package.
	part string
}

// name tells a job from the others of its set.
func (j job) name() string { return j.folder + j.part }

// jobs are those of a set, in the order in which they begin.
func jobs(set string, folders []string) []job {
	var made []job
	for _, folder := range ordered(set, folders) {
		if slices.Contains(long, folder) {
			continue
		}
		i := slices.IndexFunc(chosen, func(c choice) bool { return c.folder == folder })
		live := strings.HasPrefix(folder, "e2e/")
		switch {
		case set == "all", set == "short" && i < 0 && !live, set == "rest" && i < 0 && live:
			made = append(made, job{folder: folder})
		case set == "short" && i >= 0:
			made = append(made, job{folder: folder, filter: chosen[i].short})
		case set == "rest" && i >= 0:
			for number, rest := range chosen[i].rest {
				one := job{folder: folder, filter: rest}
				if all := len(chosen[i].rest); all > 1 {
					one.part = fmt.Sprintf(" (%d of %d)", number+1, all)
				}
				made = append(made, one)
			}
		}
	}
	return made
}

func ordered(set string, folders []string) []string {
	begin := longest
	if set == "short" {
		begin = nil
		for _, c := range chosen {
			begin = append(begin, c.folder)
		}
	}
	place := func(folder string) int {
		if i := slices.Index(begin, folder); i >= 0 {
			return i
		}
		return len(begin)
	}
	sorted := slices.Clone(folders)
	slices.SortStableFunc(sorted, func(a, b string) int { return place(a) - place(b) })
	return sorted
}

// admits says whether a filter lets a test run with all of its parts, or with
// some of them.
func (f filter) admits(test string) (wholly, partly bool) {
	ran, whole := matches(f.run, test)
	if f.run == "" {
		ran, whole = true, true
	}
	skipped, all := matches(f.skip, test)
	if !ran || skipped && all {
		return false, false
	}
	return whole && !skipped, true
}

// matches says whether a pattern is about a test, and whether about all of it.
func matches(pattern, test string) (some, all bool) {
	for _, part := range alternatives(pattern) {
		top, _, deeper := strings.Cut(part, "/")
		if part != "" && regexp.MustCompile(top).MatchString(test) {
			some, all = true, all || !deeper
		}
	}
	return some, all
}

// alternatives are the parts of a pattern, as `go test` takes it apart.
func alternatives(pattern string) []string {
	var parts []string
	depth, begin := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(' || r == '[':
			depth++
		case r == ')' || r == ']':
			depth--
		case r == '|' && depth == 0:
			parts = append(parts, pattern[begin:i])
			begin = i + 1
		}
	}
	return append(parts, pattern[begin:])
}

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// testsOf are the names of the tests in a package, read from its sources.
func testsOf(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	slices.Sort(names)
	return names, nil
}

// leftOut lists what the short set leaves to the rest.
func leftOut(folders []string) (string, error) {
	var list strings.Builder
	for _, one := range jobs("rest", folders) {
		names, err := testsOf(one.folder)
		if err != nil {
			return "", err
		}
		var left []string
		for _, name := range names {
			switch wholly, partly := one.admits(name); {
			case wholly:
				left = append(left, name)
			case partly:
				left = append(left, name+" (in part)")
			}
		}
		fmt.Fprintf(&list, "  %s: %s\n", one.name(), strings.Join(left, ", "))
	}
	fmt.Fprintf(&list, "and to `make test-long`:\n  %s, e2e/scaling: %s\n", strings.Join(long, ", "), strings.ReplaceAll(strings.Trim(slow, "^()$"), "|", ", "))
	return list.String(), nil
}
