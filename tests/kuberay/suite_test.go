package main

import (
	"bufio"
	"maps"
	"slices"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/scaling"
)

const said = `{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:5: waiting\n"}
{"Action":"run","Test":"TestA/one"}
{"Action":"output","Test":"TestA/one","Output":"    a_test.go:1: scaled\n"}
{"Action":"pass","Test":"TestA/one","Elapsed":1.5}
{"Action":"run","Test":"TestA/one#01"}
{"Action":"output","Test":"TestA/one#01","Output":"    a_test.go:9: 2 workers, want 1\n"}
{"Action":"output","Test":"TestA/one#01","Output":"    test.go:3: Retrieving Pod Container x logs\n"}
{"Action":"fail","Test":"TestA/one#01","Elapsed":2}
{"Action":"fail","Test":"TestA","Elapsed":3.5}
{"Action":"output","Output":"FAIL\n"}
not of the tests
{"Action":"skip","Test":"TestB"}
{"Action":"fail"}
`

func TestEventsBecomeOutcomesOfCases(t *testing.T) {
	var told []string
	cases := readEvents(bufio.NewScanner(strings.NewReader(said)), func(name string, o outcome) { told = append(told, o.Word+" "+name) })
	if want := []string{"pass TestA/one", "fail TestA/one#01", "skip TestB"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := slices.Sorted(maps.Keys(cases)); !slices.Equal(got, []string{"TestA/one", "TestA/one#01", "TestB"}) {
		t.Errorf("cases %q: a test counts by its cases if it has any", got)
	}
	if got := cases["TestA/one#01"]; got.Word != "fail" || got.Seconds != 2 || got.Said != "    a_test.go:5: waiting\n    a_test.go:9: 2 workers, want 1\n" {
		t.Errorf("the case that fails: %+v", got)
	}
	if got := cases["TestA/one"]; got.Said != "" {
		t.Errorf("the case that passes: %+v", got)
	}
}

// As when its program is killed.
func TestACaseWithoutAnEndHasFailed(t *testing.T) {
	cut := said[:strings.Index(said, `{"Action":"fail"`)]
	cases := readEvents(bufio.NewScanner(strings.NewReader(cut)), func(string, outcome) {})
	if got := slices.Sorted(maps.Keys(cases)); !slices.Equal(got, []string{"TestA/one", "TestA/one#01"}) {
		t.Errorf("cases %q", got)
	}
	if got := cases["TestA/one#01"]; got.Word != "fail" || !strings.Contains(got.Said, "2 workers") {
		t.Errorf("the case without an end: %+v", got)
	}
}

func TestResultsAreAddedToEarlierOnes(t *testing.T) {
	folder := t.TempDir()
	for _, mode := range []scaling.Mode{scaling.Ray, scaling.Central} {
		r, err := load(folder)
		if err != nil {
			t.Fatal(err)
		}
		r.commit = "commit of " + string(mode)
		if err := r.add("e2e", "TestA", mode, map[string]outcome{"TestA/x": {Word: "pass"}, "TestA/y": {Word: "fail"}, "TestA/z": {Word: "skip"}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if row := r.table()[1]; !slices.Equal(row, []string{"e2e TestA", "1 of 2", "1 of 2", "not run"}) {
		t.Errorf("row %q", row)
	}
	if page := r.page(); !strings.Contains(page, ", commit of central, commit of ray;") {
		t.Errorf("the commits of both runs are not named: %s", page)
	}
	if err := r.verdict(); err == nil || !strings.Contains(err.Error(), "e2e TestA/y, central") || strings.Contains(err.Error(), "TestA/x") {
		t.Errorf("verdict: %v", err)
	}
	// A later run replaces what it has run.
	for _, mode := range []scaling.Mode{scaling.Ray, scaling.Central} {
		if err := r.add("e2e", "TestA", mode, map[string]outcome{"TestA/x": {Word: "pass"}, "TestA/y": {Word: "pass"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.verdict(); err != nil {
		t.Errorf("verdict: %v", err)
	}
	// What is known to fail may.
	retry := known[0].test
	if err := r.add(known[0].suite, "TestRayJobRetry", scaling.Ray, map[string]outcome{retry: {Word: "fail"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.verdict(); err != nil {
		t.Errorf("verdict: %v", err)
	}
	if err := r.add(known[0].suite, "TestRayJobRetry", scaling.Ray, map[string]outcome{retry: {Word: "fail"}, "TestRayJobRetry/x": {Word: "fail"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.verdict(); err == nil || strings.Contains(err.Error(), retry) {
		t.Errorf("verdict: %v", err)
	}
	if page := r.page(); !strings.Contains(page, "| e2e TestA | 2 of 2 | 2 of 2 | not run |") || !strings.Contains(page, left[0].why) || !strings.Contains(page, applications[1].why) {
		t.Errorf("page: %s", page)
	}
}

func TestCasesThatAreLeftOutAreSkippedByTheirWholeName(t *testing.T) {
	if got := casesLeftOut("e2erayjob", "TestRayJob"); !strings.HasPrefix(got, "^TestRayJob$/^RayJob_controller_recreates") || !strings.HasSuffix(got, "$") {
		t.Errorf("the pattern is %q", got)
	}
	for _, test := range [][2]string{{"e2erayjob", "TestRayJobRetry"}, {"e2erayservice", "TestRayJob"}, {"e2erayservice", "TestRayServiceGCSFaultTolerance"}} {
		if got := casesLeftOut(test[0], test[1]); got != "" {
			t.Errorf("%v skips %q", test, got)
		}
	}
}
