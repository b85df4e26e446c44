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
		kubectl(t, last, "delete", "--ignore-not-found", "-f", "-")
		inEffect(t, false)
	})
	kubectl(t, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	kubectl(t, last, "apply", "--server-side", "--force-conflicts", "-f", "-")
	inEffect(t, true)
}

// last is a policy that is applied, and taken away, after all others. The API server
// takes policies and bindings in the order of their changes: when this one holds, so
// do those before it.
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
  - {expression: "object.metadata.name != 'the-last-probe'", message: the last policy holds}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: the-last-one}
spec: {policyName: the-last-one, validationActions: [Warn]}
`

// inEffect waits until the last policy is looked at, or no longer.
func inEffect(t *testing.T, want bool) {
	t.Helper()
	probe := rig.RayCluster(judged, "the-last-probe")
	err := lab.Eventually(t.Context(), time.Minute, "the policies come and go", func() error {
		_, warnings, err := l.RequestWarned(t.Context(), http.MethodPost, collection(probe)+"?dryRun=All", probe.JSON())
		said := strings.Join(warnings, "\n") + fmt.Sprint(err)
		if got := strings.Contains(said, "the last policy holds"); got != want {
			return fmt.Errorf("the API server says: %s", said)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
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
