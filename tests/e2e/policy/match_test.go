package policy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// rulesOf has two findings, of RF201 and RF213, in one object.
func rulesOf(namespace, name string) rig.Object {
	object := faulty(namespace, name)
	return object.Set("spec.workerGroupSpecs[1]", rig.WorkerGroup("endless")).
		Remove("spec.workerGroupSpecs[1].maxReplicas")
}

func TestTheFirstPolicyThatSpeaksOfARuleDecidesAndIsNamed(t *testing.T) {
	lax, strict := namespace(t, "lax"), namespace(t, "strict")
	policy(t, "everywhere", "{mode: Warn, rules: {RF214: Enforce}}")
	policy(t, "for-strict", "{priority: 10, match: {namespaceSelector: {matchLabels: {level: strict}}}, rules: {RF201: Enforce, RF213: Audit}}")
	labtest.Eventually(t, patience, "wait until the policies are in force", func() error { return is(comesTo(faulty(lax, "a")), "warned") })

	outside := func(ns string) error {
		said, denied, err := try(rulesOf(ns, "a"))
		if err != nil || denied || !strings.Contains(said, "RF201 [everywhere]") || !strings.Contains(said, "RF213 [everywhere]") {
			return fmt.Errorf("denied: %t, %v, it says: %s", denied, err, said)
		}
		return nil
	}
	for _, ns := range []string{lax, strict} {
		if err := outside(ns); err != nil {
			t.Errorf("in %s: %v", ns, err)
		}
	}

	must(t, "label", "namespace", strict, "level=strict")
	labtest.Eventually(t, patience, "wait until the label counts", func() error {
		said, denied, err := try(rulesOf(strict, "a"))
		if err != nil || !denied || !strings.Contains(said, "(by policy for-strict)") || strings.Contains(said, "RF213") {
			return fmt.Errorf("denied: %t, %v, it says: %s", denied, err, said)
		}
		return nil
	})
	// Of RF214 the first policy says nothing.
	working := rig.RayCluster(strict, "working").Remove("spec.headGroupSpec.rayStartParams.num-cpus")
	if said, denied, err := try(working); err != nil || !denied || !strings.Contains(said, "(by policy everywhere)") {
		t.Errorf("RF214: denied: %t, %v, it says: %s", denied, err, said)
	}
	if err := outside(lax); err != nil {
		t.Error(err)
	}

	must(t, "label", "namespace", strict, "level-")
	labtest.Eventually(t, patience, "wait until the label is gone", func() error { return outside(strict) })
}

func TestAMatchThatIsAboutNothingIsPointedOut(t *testing.T) {
	ns := namespace(t, "matched")
	store(t, rig.RayCluster(ns, "exp-1").Set("metadata.labels[tier]", "prod"))
	within := "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + ns + "}}, "
	for scope, wanted := range map[string]string{
		within + "names: [exp-*]":                                      "",
		within + "objectSelector: {matchLabels: {tier: prod}}":         "",
		within + "names: [exp-*, ex-*]":                                "spec.match.names[1]: ",
		within + "objectSelector: {matchLabels: {tier: none}}":         "spec.match.objectSelector: ",
		"namespaceSelector: {matchLabels: {team: nobody}}":             "spec.match.namespaceSelector: ",
		within + "kinds: [RayJob], names: [exp-*]":                     "",
		within + "kinds: [RayCluster], names: [exp-*, live]":           "spec.match.names[1]: ",
		within + "names: [ex*], objectSelector: {matchLabels: {a: b}}": "spec.match.objectSelector: ",
	} {
		labtest.Eventually(t, patience, "wait until it is said of "+scope, func() error {
			said, err := doubts("{mode: Audit, match: {" + scope + "}}")
			if err != nil || len(said) > 1 || !strings.Contains(strings.Join(said, ""), wanted) || wanted == "" && len(said) > 0 {
				return fmt.Errorf("%v, it says: %q", err, said)
			}
			return nil
		})
	}
}

// doubts are what is pointed out to somebody who makes a policy. It is not made.
func doubts(spec string) ([]string, error) {
	body, err := yaml.YAMLToJSON([]byte(manifest("matching", spec)))
	if err != nil {
		return nil, err
	}
	_, warnings, err := shared.Lab.RequestWarned(noDeadline, http.MethodPost, "/apis/rayfit.dev/v1alpha1/raypolicies?dryRun=All", body)
	return warnings, err
}
