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
	// rest is nil where nothing is left.
	rest *filter
}

// scenes of TestGrowth: out, in place, and in again.
const scenes = "^(a_running_pod_grows|a_pod_that_is_still_to_come_will_grow)$"

// needLab are the lab's own tests that start one.
const needLab = "^(TestAdmissionOnly|TestInterruptedStartLeavesNothing|TestPodIsAProcess|TestPodsHaveNetworks)$"

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
		// In mode sidecar no other scene is played.
		&filter{skip: "^TestGrowth$/^central$/" + scenes + "|^TestGrowth$/^sidecar$|^TestTwoTenants$|^TestPlanOfALiveCluster$"},
	},
	{"e2e/admission", filter{}, nil},
	{"e2e/policy", filter{}, nil},
	{"lab", filter{skip: needLab}, &filter{run: needLab}},
}

// longest are the packages of the rest that are to begin first, and loaded those
// that are to begin last, because they hold Rayfit to figures under load.
var (
	longest = []string{"e2e/scaling", "e2e/kueue", "e2e/kuberay", "e2e/vap", "e2e/rights"}
	loaded  = []string{"e2e/install", "e2e/agrees"}
)

// job is a call of `go test`: a package, and which of its tests.
type job struct {
	folder string
	filter
}

// jobs are those of a set, in the order in which they begin.
func jobs(set string, folders []string) []job {
	var made []job
	for _, folder := range ordered(set, folders) {
		i := slices.IndexFunc(chosen, func(c choice) bool { return c.folder == folder })
		live := strings.HasPrefix(folder, "e2e/")
		switch {
		case set == "all", set == "short" && i < 0 && !live, set == "rest" && i < 0 && live:
			made = append(made, job{folder: folder})
		case set == "short" && i >= 0:
			made = append(made, job{folder, chosen[i].short})
		case set == "rest" && i >= 0 && chosen[i].rest != nil:
			made = append(made, job{folder, *chosen[i].rest})
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
		switch i := slices.Index(begin, folder); {
		case i >= 0:
			return i
		case slices.Contains(loaded, folder):
			return len(begin) + 1
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
		fmt.Fprintf(&list, "  %s: %s\n", one.folder, strings.Join(left, ", "))
	}
	return list.String(), nil
}
