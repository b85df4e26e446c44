package main

import (
	"strings"
	"testing"
)

func TestGoal(t *testing.T) {
	ray := outcome{wait: 10, later: 10, cpuSeconds: 1000, retried: 3}
	for _, one := range []struct {
		name string
		ours outcome
		met  bool
		why  string
	}{
		{"mixed", outcome{wait: 10.5, cpuSeconds: 1050}, true, "1.05 of Ray's wait, 1.05 of its CPU-hours"},
		{"mixed", outcome{wait: 10.6, cpuSeconds: 100}, false, "the wait is worse"},
		{"mixed", outcome{wait: 1, cpuSeconds: 1060}, false, "the CPU-hours are worse"},
		// That Ray harms tasks too is no excuse.
		{"mixed", outcome{wait: 1, cpuSeconds: 100, retried: 1}, false, "1 tasks harmed"},
		{"mixed", outcome{wait: 1, cpuSeconds: 100, failed: 2}, false, "2 tasks harmed"},
		{"mixed", outcome{wait: 1, cpuSeconds: 100, restarted: 1}, false, "1 pods restarted"},
		{gapped, outcome{wait: 2, later: 2, cpuSeconds: 1000}, true, ""},
		{gapped, outcome{wait: 10, later: 10, cpuSeconds: 500}, true, ""},
		{gapped, outcome{wait: 2, later: 2, cpuSeconds: 1010}, false, "neither"},
		{gapped, outcome{wait: 10.1, later: 10.1, cpuSeconds: 500}, false, "neither"},
		{gapped, outcome{wait: 5, later: 5, cpuSeconds: 600}, false, "neither"},
		{gapped, outcome{wait: 4, later: 1, cpuSeconds: 900}, false, "only after a gap (0.10)"},
	} {
		got := judge(one.name, ray, one.ours)
		if got.met != one.met || !strings.Contains(got.why, one.why) {
			t.Errorf("%s, %+v: %+v", one.name, one.ours, got)
		}
	}
	if got := judge("mixed", outcome{}, outcome{wait: 1}); got.met {
		t.Errorf("some wait where Ray had none: %+v", got)
	}
}
