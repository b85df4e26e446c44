package policy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// counts are objects with findings, by rule and by what these come to:
// "RF201 denied", "RF213 warned".
type counts map[string]int

// words maps modes to what they come to.
var words = map[string]string{"enforce": "denied", "warn": "warned", "audit": "audited"}

type ruleCount struct {
	Rule                                       string
	Denied, Warned, Audited, Exempt, WouldDeny int
}

func added(rules []ruleCount) counts {
	found := counts{}
	for _, rule := range rules {
		for word, count := range map[string]int{"denied": rule.Denied, "warned": rule.Warned, "audited": rule.Audited} {
			if count > 0 {
				found[rule.Rule+" "+word] += count
			}
		}
	}
	return found
}

// auditCounts is what the audit writes into a policy's status, and what `rayfit
// rollout` prints.
type auditCounts struct {
	Objects   int
	Denied    int
	WouldDeny int
	Rules     []ruleCount
}

// inStatus is what the audit counts for a policy.
func inStatus(t *testing.T, name string) auditCounts {
	t.Helper()
	var policy struct{ Status auditCounts }
	decode(t, must(t, "get", "rayp", name, "-o", "json"), &policy)
	return policy.Status
}

// inRollout is what `rayfit rollout` counts in the cluster.
func inRollout(t *testing.T, args ...string) auditCounts {
	t.Helper()
	var found auditCounts
	decode(t, rayfit(t, "", append([]string{"rollout", "-o", "json"}, args...)...), &found)
	return found
}

// inCheck is what `rayfit check` counts in objects and a policy as kubectl
// prints them.
func inCheck(t *testing.T, namespace, name string) (found counts, denied int) {
	t.Helper()
	file := write(t, must(t, "get", "rayp", name, "-o", "yaml"))
	var report struct {
		Findings []struct {
			Rule, Mode, Policy string
			Object             struct{ Name string }
		}
		Summary struct{ Denied int }
	}
	decode(t, rayfit(t, must(t, "get", "rayclusters", "-n", namespace, "-o", "yaml"), "check", "--policy", file, "-o", "json", "-"), &report)
	found = counts{}
	for _, finding := range report.Findings {
		if finding.Policy != name {
			t.Errorf("check: %s of %s was decided by %q", finding.Rule, finding.Object.Name, finding.Policy)
		}
		found[finding.Rule+" "+words[finding.Mode]]++
	}
	return found, report.Summary.Denied
}

// series and gauge find the labels of a metric's samples.
var (
	series = regexp.MustCompile(`^rayfit_findings_total\{rule="(\w+)",mode="(\w+)"\}$`)
	gauge  = regexp.MustCompile(`^rayfit_audit_findings\{rule="(\w+)",outcome="(\w+)"\}$`)
)

// inMetrics is what the webhook has counted so far.
func inMetrics(t *testing.T) counts {
	t.Helper()
	found := counts{}
	for name, value := range metrics(t) {
		if match := series.FindStringSubmatch(name); match != nil {
			found[match[1]+" "+words[match[2]]] = int(value)
		}
	}
	return found
}

// since is what has been added.
func (c counts) since(before counts) counts {
	more := counts{}
	for key, count := range c {
		if count > before[key] {
			more[key] = count - before[key]
		}
	}
	return more
}

func (c counts) are(t *testing.T, who string, wanted counts) {
	t.Helper()
	if !maps.Equal(c, wanted) {
		t.Errorf("%s counts %v, want %v", who, c, wanted)
	}
}

func metrics(t *testing.T) rig.Metrics {
	t.Helper()
	found, err := shared.Server.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in: %s", err, text)
	}
}

// write makes a file that goes with the test.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
