package agrees_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// differences are what is not as it was simulated: events that are missing or too
// many, in another order, or at another time.
func differences(simulated, done []event, common settings) []string {
	var found []string
	pairs, missing, more := pair(simulated, done)
	for _, d := range missing {
		found = append(found, fmt.Sprintf("simulated at %.1f s and not done: %s", d.at, d.what))
	}
	for _, d := range more {
		found = append(found, fmt.Sprintf("done at %.1f s and not simulated: %s", d.at, d.what))
	}
	for i, one := range pairs {
		if off := one.done.at - one.simulated.at; math.Abs(off) > common.tolerance(one.done) {
			found = append(found, fmt.Sprintf("%s: simulated at %.1f s, done %+.1f s later", one.done.what, one.simulated.at, off))
		}
		for _, later := range pairs[i+1:] {
			if later.simulated.at > one.simulated.at+common.TogetherSeconds && later.done.at < one.done.at {
				found = append(found, fmt.Sprintf("%s (at %.1f s) was done before %s (at %.1f s), and simulated %.1f s after it",
					later.done.what, later.done.at, one.done.what, one.done.at, later.simulated.at-one.simulated.at))
			}
		}
	}
	return found
}

// of are the settings that hold for a script.
func (s settings) of(one script) settings {
	if !one.losesHead() {
		s.HeadToleranceSeconds = s.ToleranceSeconds
	}
	return s
}

// tolerance is by how much the time of an event may differ.
func (s settings) tolerance(d event) float64 {
	switch {
	case strings.HasPrefix(d.what, "begins "):
		return s.StartToleranceSeconds
	case strings.HasPrefix(d.what, "loses "):
		return s.HeadToleranceSeconds
	}
	return s.ToleranceSeconds
}

// pairs are a simulated event and the one of the same words that was done.
type both struct{ simulated, done event }

// pair finds for each simulated event the one that was done: of equal ones, the
// first for the first.
func pair(simulated, done []event) (pairs []both, missing, more []event) {
	more = slices.Clone(done)
	for _, d := range simulated {
		at := slices.IndexFunc(more, func(other event) bool { return other.what == d.what })
		if at < 0 {
			missing = append(missing, d)
			continue
		}
		pairs = append(pairs, both{d, more[at]})
		more = slices.Delete(more, at, at+1)
	}
	return pairs, missing, more
}

// sideBySide is a table of what was simulated and done, by the time of the former.
func sideBySide(simulated, done []event) string {
	pairs, missing, more := pair(simulated, done)
	var lines strings.Builder
	for _, one := range pairs {
		fmt.Fprintf(&lines, "%8.2f %8.2f %+7.2f  %s\n", one.simulated.at, one.done.at, one.done.at-one.simulated.at, one.done.what)
	}
	for _, d := range missing {
		fmt.Fprintf(&lines, "%8.2f        -          %s\n", d.at, d.what)
	}
	for _, d := range more {
		fmt.Fprintf(&lines, "       - %8.2f          %s\n", d.at, d.what)
	}
	return lines.String()
}

// TestEndOfAll: a gang ends with its last task, in whatever order its tasks end.
func TestEndOfAll(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, one := range []struct {
		ended []time.Time
		want  time.Time
	}{
		{[]time.Time{{}, early}, time.Time{}},
		{[]time.Time{early, {}}, time.Time{}},
		{[]time.Time{late, early}, late},
	} {
		var tasks []scaling.Task
		for _, ended := range one.ended {
			tasks = append(tasks, scaling.Task{Ended: ended})
		}
		if got := endOfAll(tasks); got != one.want {
			t.Errorf("tasks that ended at %v: all had ended at %v instead of %v", one.ended, got, one.want)
		}
	}
}

func TestDifferences(t *testing.T) {
	common := settings{ToleranceSeconds: 5, StartToleranceSeconds: 8, TogetherSeconds: 1}
	simulated := []event{{1, "replicas a 1"}, {1.1, "makes a"}, {8, "begins job-1 a"}, {18, "ends job-1"}, {30, "gone a-1"}}
	for _, try := range []struct {
		name string
		done []event
		want string
	}{
		{"all is equal", simulated, ""},
		{"what is together has no order", []event{{1, "makes a"}, {1.1, "replicas a 1"}, {9, "begins job-1 a"}, {19, "ends job-1"}, {31, "gone a-1"}}, ""},
		{"one is missing", simulated[:4], "simulated at 30.0 s and not done: gone a-1"},
		{"one is too many", append(slices.Clone(simulated), event{31, "makes a"}), "done at 31.0 s and not simulated: makes a"},
		{"one is late", []event{{1, "replicas a 1"}, {1.1, "makes a"}, {13.5, "begins job-1 a"}, {18, "ends job-1"}, {35.5, "gone a-1"}}, "gone a-1: simulated at 30.0 s, done +5.5 s later"},
		{"one begins late", []event{{1, "replicas a 1"}, {1.1, "makes a"}, {16.5, "begins job-1 a"}, {18, "ends job-1"}, {30, "gone a-1"}}, "begins job-1 a: simulated at 8.0 s, done +8.5 s later"},
		{"the order is another", []event{{1, "replicas a 1"}, {4.5, "makes a"}, {4, "begins job-1 a"}, {18, "ends job-1"}, {30, "gone a-1"}}, "was done before makes a"},
	} {
		t.Run(try.name, func(t *testing.T) {
			told := strings.Join(differences(simulated, try.done, common), "\n")
			if try.want == "" && told != "" || !strings.Contains(told, try.want) {
				t.Errorf("told %q instead of %q", told, try.want)
			}
		})
	}
}
