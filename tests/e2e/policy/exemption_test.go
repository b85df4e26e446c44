package policy_test

import (
	"fmt"
	"net/http"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"strings"
	"testing"
	"time"
)

// exempting enforces everything, with an exemption from RF201; as JSON.
func exempting(namespace string, expires time.Time) string {
	return fmt.Sprintf(`{"mode":"Enforce","exemptions":[{"rules":["RF201"],"objects":[{"namespace":%q}],"reason":"moving","ticket":"RAY-12","expires":%q}]}`,
		namespace, expires.UTC().Format(time.RFC3339))
}

func TestAnExemptionEndsByItself(t *testing.T) {
	ns := namespace(t, "exempt")
	policy(t, "exempting", exempting(ns, time.Now().Add(time.Hour)))
	labtest.Eventually(t, patience, "wait until it is exempt", func() error { return is(comesTo(faulty(ns, "probe")), "silent") })
	store(t, faulty(ns, "old"))
	audits(t, "exempting", 0, 1)
	processes := shared.Lab.PID(shared.Server.Name)

	// The API server's clock is ours.
	end := time.Now().Add(5 * time.Second).Truncate(time.Second)
	change(t, "exempting", exempting(ns, end))
	labtest.Eventually(t, patience, "wait until it has ended", func() error {
		answer := comesTo(faulty(ns, "probe"))
		if answer != "silent" && time.Now().Before(end) {
			t.Errorf("%s before its end, at %s, it is %s", time.Until(end), end, answer)
		}
		return is(answer, "denied")
	})
	if time.Now().Before(end) {
		t.Error("it has ended before its time")
	}

	audits(t, "exempting", 1, 0)
	labtest.Eventually(t, patience, "wait until the status says so", func() error {
		said := must(t, "get", "rayp", "exempting", "-o", `jsonpath={.status.conditions[?(@.type=="ExemptionsEnded")].message}`)
		return is(said, "spec.exemptions[0] (RAY-12) ended at "+end.UTC().Format(time.RFC3339)+": renew or remove it")
	})
	// Whoever changes the policy is told, and not kept from it.
	if said := change(t, "exempting", `{"priority":1}`); !strings.Contains(said, "spec.exemptions[0].expires: ") || !strings.Contains(said, " is in the past") {
		t.Errorf("a change of the policy: %s", said)
	}
	if now := shared.Lab.PID(shared.Server.Name); now != processes {
		t.Errorf("process %d has become %d", processes, now)
	}
	for _, at := range []struct {
		time   time.Time
		wanted counts
	}{{end.Add(-time.Second), counts{"RF201 audited": 1}}, {end, counts{"RF201 denied": 1}}} {
		file := write(t, must(t, "get", "rayp", "exempting", "-o", "yaml"))
		added(inRollout(t, "--policy", file, "--at", at.time.UTC().Format(time.RFC3339)).Rules).are(t, "rollout at "+at.time.String(), at.wanted)
	}

	// What is stored can be changed all the same: it was there before.
	old := faulty(ns, "old")
	_, warnings, err := shared.Lab.RequestWarned(t.Context(), http.MethodPatch, collection(old)+"/old", []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))
	if err != nil || !strings.Contains(strings.Join(warnings, "\n"), "RF201") {
		t.Errorf("an update of what is stored: %v, warnings %v", err, warnings)
	}
}

// audits waits until the audit counts objects that RF201 denies and exempt ones.
func audits(t *testing.T, policy string, denied, exempt int) {
	t.Helper()
	labtest.Eventually(t, patience, "wait until the audit counts so", func() error {
		for _, rule := range inStatus(t, policy).Rules {
			if rule.Rule == "RF201" && rule.Denied == denied && rule.Exempt == exempt {
				return nil
			}
		}
		return fmt.Errorf("it counts %+v", inStatus(t, policy))
	})
}
