package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

// failure is a test that has failed, or a job of which nothing has run, without a test.
type failure struct {
	job  job
	test string
	// reasons are what the test's assertions have said.
	reasons []string
}

func (f failure) name() string {
	if f.test == "" {
		return f.job.name()
	}
	return f.job.folder + " " + f.test
}

// told is the failure's name and what its assertions have said.
func (f failure) told() string {
	return strings.Join(append([]string{f.name()}, f.reasons...), "\n")
}

func names(failed []failure) []string {
	var all []string
	for _, one := range failed {
		all = append(all, one.name())
	}
	return all
}

func reasons(failed []failure) []string {
	var all []string
	for _, one := range failed {
		all = append(all, one.told())
	}
	return all
}

// packageOutput reads what `go test -json` says of a package.
type packageOutput struct {
	stage *stage
	job   job
	// kept is what a test, or the package itself, has printed so far.
	kept   map[string]*strings.Builder
	failed []failure
	passed int
}

func newPackageOutput(s *stage, of job) *packageOutput {
	return &packageOutput{stage: s, job: of, kept: map[string]*strings.Builder{}}
}

// event is a line of `go test -json`, as far as it is read.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

func (t *packageOutput) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		// Not of the tests: what the compiler complains of.
		t.keep("", string(line))
		return
	}
	test, part, _ := strings.Cut(e.Test, "/")
	switch e.Action {
	case "output", "build-output":
		t.keep(test, e.Output)
	case "pass":
		if test != "" {
			t.report("ok", e)
			if part == "" {
				t.passed++
				delete(t.kept, test)
			}
		}
	case "fail", "skip":
		if test == "" {
			return
		}
		t.report(map[string]string{"fail": "FAILED", "skip": "SKIPPED"}[e.Action], e)
		if part == "" {
			one := failure{job: t.job, test: test}
			if said := t.kept[test]; said != nil {
				one.reasons = asserted(said.String())
			}
			t.failed = append(t.failed, one)
			t.show(test)
		}
	}
}

// report prints that a test has ended: one of the package, or a part of one that is
// long.
func (t *packageOutput) report(word string, e event) {
	took := time.Duration(e.Elapsed * float64(time.Second))
	if strings.Contains(e.Test, "/") && word == "ok" && took < 5*time.Second {
		return
	}
	t.stage.print("%s  %-6s %s %s, %s\n", t.stage.clock(), word, t.job.folder, e.Test, took.Round(100*time.Millisecond))
}

func (t *packageOutput) keep(test, text string) {
	if t.kept[test] == nil {
		t.kept[test] = &strings.Builder{}
	}
	t.kept[test].WriteString(text)
}

// An assertion's line begins with where it is; what follows it may be long, as
// when a test shows what its cluster did.
var assertion = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: .*`)

// asserted is the assertions in what a test has printed: the last ones, short.
func asserted(said string) []string {
	const most, longest = 12, 400
	lines := assertion.FindAllString(said, -1)
	lines = lines[max(0, len(lines)-most):]
	for i, line := range lines {
		if len(line) > longest {
			lines[i] = strings.ToValidUTF8(line[:longest], "") + " ..."
		}
	}
	return lines
}

// show prints what a test has printed.
func (t *packageOutput) show(test string) {
	if said := t.kept[test]; said != nil {
		t.stage.print("%s", said)
		delete(t.kept, test)
	}
}

// rest prints what is left of a package that has failed: of tests that did not
// end, and of the package itself.
func (t *packageOutput) rest() {
	for test := range t.kept {
		t.show(test)
	}
}
