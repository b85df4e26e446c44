package vap_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// rayfit runs the binary and returns its standard output.
func rayfit(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rayfit %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// install applies policies until the test ends, and waits until they hold.
func install(t *testing.T, manifests string) {
	t.Helper()
	t.Cleanup(func() {
		kubectl(t, manifests, "delete", "--ignore-not-found", "-f", "-")
		settle(t)
		kubectl(t, fmt.Sprintf(last, ""), "delete", "--ignore-not-found", "-f", "-")
	})
	kubectl(t, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	settle(t)
}

// last is a policy that is applied after all others have been applied or deleted.
const last = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: the-last-one}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [ray.io], apiVersions: ["*"], resources: [rayclusters], operations: [CREATE]}
  validations:
  - {expression: "object.metadata.name != 'the-last-probe'", message: "the last policy holds: %s"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: the-last-one}
spec: {policyName: the-last-one, validationActions: [Warn]}
`

// times counts how often the last policy was changed.
var times int

// settle waits until the API server judges by all policies that are stored, and by no other. It changes the
// last policy and waits until that holds, twice: the API server takes the changes of policies in their
// order, and those of bindings, but while it prepares a list of pairs it may already see the last policy
// and have missed one before it. The list after that has them all.
func settle(t *testing.T) {
	t.Helper()
	for range 2 {
		times++
		round := fmt.Sprintf("round %d.", times)
		kubectl(t, fmt.Sprintf(last, round), "apply", "--server-side", "--force-conflicts", "-f", "-")
		probe := rig.RayCluster(judged, "the-last-probe")
		// The test's own context has ended where this runs at its end.
		err := lab.Eventually(noDeadline, time.Minute, "the policies come and go", func() error {
			_, warnings, err := l.RequestWarned(noDeadline, http.MethodPost, collection(probe)+"?dryRun=All", probe.JSON())
			if said := strings.Join(warnings, "\n") + fmt.Sprint(err); !strings.Contains(said, "the last policy holds: "+round) {
				return fmt.Errorf("the API server says: %s", said)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := l.KubectlCommand(noDeadline, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// coverage is what each rule says of itself: yes, in part or no.
func coverage(t *testing.T) map[string]string {
	t.Helper()
	var pages []struct {
		ID             string
		WithoutWebhook struct{ Covered string }
	}
	if err := json.Unmarshal([]byte(rayfit(t, "rules", "-o", "json")), &pages); err != nil {
		t.Fatal(err)
	}
	covered := map[string]string{}
	for _, page := range pages {
		covered[page.ID] = page.WithoutWebhook.Covered
	}
	return covered
}

// policies are the names of those that a manifest holds, each with its rule and mode.
func policies(t *testing.T, manifests string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, document := range strings.Split(manifests, "\n---\n") {
		var object rig.Object
		if err := unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		if object["kind"] != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		name := object.Name()
		mode := map[any]string{"Deny": "enforce", "Warn": "warn", "Audit": "audit"}[object.Get("spec.validationActions[0]")]
		found[name] = strings.ToUpper(name[:5]) + " " + mode
	}
	return found
}

// isDenied checks that the API server refuses a request because of a rule.
func isDenied(t *testing.T, err error, rule string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "denied request: "+rule+" ") {
		t.Errorf("want a denial by %s, got: %v", rule, err)
	}
}
