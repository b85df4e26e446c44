package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

func TestChosenWorkloadsBeginAtOnce(t *testing.T) {
	found := chosen([]string{serving, "mixed"})
	if len(found) != 2 || found[0].name != "mixed" || found[0].acts[0].at != 0 || found[1].acts[0].at != seconds(155) {
		t.Errorf("%+v", found)
	}
	if workloads[1].acts[0].at != seconds(30) {
		t.Error("choosing has moved the acts of all runs")
	}
	if len(chosen([]string{bursting})) != 0 {
		t.Error("another script is a workload")
	}
}

func TestWorkloadsTakeTurns(t *testing.T) {
	batches := map[string]bool{}
	for _, w := range workloads {
		if !slices.IsSortedFunc(w.acts, func(a, b act) int { return int(a.at - b.at) }) {
			t.Errorf("%s: its acts are not in their order", w.name)
		}
		if last := w.acts[len(w.acts)-1].at; w.end() <= last+seconds(30) {
			t.Errorf("%s: its pods are not counted until its last act is over", w.name)
		}
		for _, a := range w.acts {
			if batches[a.batch] {
				t.Errorf("batch %s occurs twice", a.batch)
			}
			batches[a.batch] = true
			for _, other := range workloads {
				for _, b := range other.acts {
					if other.name != w.name && (b.at-a.at).Abs() < seconds(25) {
						t.Errorf("%s and %s disturb each other", a.batch, b.batch)
					}
				}
			}
		}
	}
}

func TestOneRoundOfEverythingTakesLessThan25Minutes(t *testing.T) {
	o, err := parse([]string{"--rayfit", "x"}, io.Discard)
	if err != nil || o.duration() > 25*time.Minute {
		t.Errorf("%s, %v", o.duration(), err)
	}
}

func TestCommandLine(t *testing.T) {
	for line, wrong := range map[string]string{
		"":                                     "--rayfit is missing",
		"--rayfit x --scripts gaps,nope":       `no script "nope"`,
		"--rayfit x --only both":               `no scaler "both"`,
		"--rayfit x --rounds 0":                "--rounds is 0",
		"--rayfit x --docs d --only ray":       "leave --only and --policy out",
		"--rayfit x --docs d --scripts bursts": "whole tables",
		"--rayfit x more":                      `unexpected "more"`,
	} {
		if _, err := parse(strings.Fields(line), io.Discard); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", line, err)
		}
	}
	o, err := parse(strings.Fields("--rayfit x --docs d --scripts gaps,mixed,group,serve,actors"), io.Discard)
	if err != nil || len(o.scripts) != 5 || len(o.modes) != 3 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestReportMarksWhatIsWorse(t *testing.T) {
	of := func(wait, cpu float64) []figures {
		return []figures{{outcomes: map[string]outcome{"mixed": {wait: wait, later: wait, cpuSeconds: cpu}}}}
	}
	r := results{rounds: 1, scripts: []string{"mixed"}, modes: modes, of: map[scaling.Mode][]figures{
		scaling.Ray: of(10, 3600), scaling.Central: of(5, 4000), scaling.Sidecar: of(10.6, 1800),
	}}
	told := r.told()
	for _, wanted := range []string{
		"10.0 s  5.00 s (0.50)  10.6 s (1.06, worse)",
		"1.000    1.111 (1.11, worse)           0.500 (0.50)",
		"mixed, central: not reached: 0.50 of Ray's wait, 1.11 of its CPU-hours: the CPU-hours are worse",
		"mixed, sidecar: not reached: 1.06 of Ray's wait, 0.50 of its CPU-hours: the wait is worse",
	} {
		if !strings.Contains(strings.Join(strings.Fields(told), " "), strings.Join(strings.Fields(wanted), " ")) {
			t.Errorf("%q is missing in\n%s", wanted, told)
		}
	}
	if strings.Contains(told, "patches") {
		t.Error("it tells of scripts that were not run")
	}
	delete(r.of, scaling.Sidecar)
	if told := r.told(); strings.Contains(told, "sidecar") || strings.Contains(told, "NaN") {
		t.Errorf("it tells of a scaler that has had no turn:\n%s", told)
	}
	r.of[scaling.Central] = append(of(5, 3000), figures{outcomes: map[string]outcome{"mixed": {wait: 5, retried: 1}}})
	if got := r.outcome(scaling.Central, "mixed"); got.retried != 1 || got.cpuSeconds != 1500 {
		t.Errorf("harm in one round of two counts: %+v", got)
	}
}

func TestReportMarksGoalsThatAreMissed(t *testing.T) {
	of := func(asked, patches, memory float64) []figures {
		f := figures{memory: memory, growth: [3]float64{1, 2, 2.6}}
		f.asked[2], f.patches[2] = asked, patches
		return []figures{f}
	}
	r := results{rounds: 1, scripts: []string{bursting, growing}, modes: modes, of: map[scaling.Mode][]figures{
		scaling.Ray: of(50, 10, 110), scaling.Central: of(1, 2, 30), scaling.Sidecar: of(1.5, 1, 16),
	}}
	told := strings.Join(strings.Fields(r.pace().Markdown()), " ")
	for _, wanted := range []string{
		"| demand for 100 pods: asked for | 50.0 s | 1.00 s | 1.50 s, missed | at most 1 s |",
		"| demand for 100 pods: patches | 10 | 2, missed | 1 | at most 1 |",
		"| demand for 100 pods: the last one is made | 0.00 s | 0.00 s | 0.00 s | |",
		"| memory (RSS) | 110 MiB | 30.0 MiB | 16.0 MiB, missed | sidecar at most 15 MiB |",
		"| growing in place: all three run | 2.60 s | 2.60 s, missed | 2.60 s, missed | at most 2.5 s |",
	} {
		if !strings.Contains(told, wanted) {
			t.Errorf("%q is missing in\n%s", wanted, told)
		}
	}
}

func TestBothPartsOfThePageAreWrittenAndSayFromWhichCommit(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), page, 0o600); err != nil {
		t.Fatal(err)
	}
	machine, err := tables.ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	of := []figures{{memory: 1234, outcomes: map[string]outcome{}}}
	r := results{machine: machine, rounds: 7, scripts: scripts(), modes: modes, of: map[scaling.Mode][]figures{
		scaling.Ray: of, scaling.Central: of, scaling.Sidecar: of,
	}}
	if err := r.write(folder); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	if from := strings.Count(string(written), machine.String()+". Median of rounds: 7."); from != 2 || !strings.Contains(machine.String(), " commit") {
		t.Errorf("%d parts say that they are from %s", from, machine)
	}
	if !strings.Contains(string(written), "1,234 MiB") {
		t.Error("the figures are not there")
	}
}
