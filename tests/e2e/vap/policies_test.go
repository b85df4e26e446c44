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
		inEffect(t, false)
	})
	kubectl(t, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	inEffect(t, true)
}

// inEffect waits until the last policy refuses, or no longer refuses, what it is about.
func inEffect(t *testing.T, want bool) {
	t.Helper()
	// The rules of the first and of the last policy: RF101 and RF402.
	bad := rig.RayCluster(judged, "probe").
		Set("metadata.annotations[ray.io/ippr]", "not JSON").
		Set("metadata.annotations[rayfit.dev/reconcile]", "nobody")
	err := lab.Eventually(t.Context(), time.Minute, "the policies come and go", func() error {
		_, warnings, err := l.RequestWarned(t.Context(), http.MethodPost, collection(bad)+"?dryRun=All", bad.JSON())
		said := strings.Join(warnings, "\n") + fmt.Sprint(err)
		if got := strings.Contains(said, "rayfit.dev"); got != want {
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
