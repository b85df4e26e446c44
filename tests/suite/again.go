package main

import (
	"context"
	"errors"
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

// mostAgain is how many tests are tried again at most: where more have failed, it is the
// change.
const mostAgain = 3

// tryAgain runs each failed test alone, and returns what has failed again. For what there
// is no time to try, the first failure stands.
func (s *stage) tryAgain(ctx context.Context, failed []failure) []failure {
	if len(failed) > mostAgain {
		return failed
	}
	var still []failure
	for _, one := range failed {
		if one.test == "" || outOfTime(ctx) {
			still = append(still, one)
			continue
		}
		s.print("%s  again  %s\n", s.clock(), one.name())
		begin := time.Now()
		alone := job{folder: one.job.folder, filter: one.job.only(one.test), part: " " + one.test + " again"}
		_, err := s.test(ctx, alone)
		if !errors.Is(err, errInterrupted) {
			s.end(alone, time.Since(begin), err)
		}
		if err != nil {
			still = append(still, one)
			continue
		}
		s.unsteady = append(s.unsteady, one.told())
	}
	return still
}

// only is the filter that lets one of the tests run which this one does, with the same
// parts.
func (f filter) only(test string) filter {
	var run []string
	for _, part := range alternatives(f.run) {
		if top, _, _ := strings.Cut(part, "/"); part != "" && regexp.MustCompile(top).MatchString(test) {
			run = append(run, part)
		}
	}
	// A pattern for several tests, as "^(TestA|TestB)$", says nothing about their parts.
	if len(run) != 1 || !strings.Contains(run[0], "/") {
		run = []string{"^" + test + "$"}
	}
	return filter{run: run[0], skip: f.skip}
}
