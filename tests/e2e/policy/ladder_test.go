package policy_test

import (
	"fmt"
	"testing"
)

func TestTheLadderGoesUpAndDownAndTheAuditAgrees(t *testing.T) {
	must(t, "create", "namespace", "ladder")
	bad := faulty("ladder", "bad")
	policy(t, "ladder", "{mode: Audit}")
	eventually(t, "wait until the policy is in force", func() error { return is(comesTo(bad), "silent") })
	if _, _, err := shared.Lab.Apply(bad.YAML()); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct{ mode, answer, counts string }{
		{"Audit", "silent", "0 1"},
		{"Warn", "warned", "0 1"},
		{"Enforce", "denied", "1 0"},
		{"Warn", "warned", "0 1"},
		{"Audit", "silent", "0 1"},
	} {
		must(t, "patch", "rayp", "ladder", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"mode":%q}}`, step.mode))
		other := faulty("ladder", "other")
		eventually(t, "wait until "+step.mode+" is in force", func() error { return is(comesTo(other), step.answer) })
		eventually(t, "wait until the audit counts so", func() error {
			counts := must(t, "get", "rayp", "ladder", "-o", "jsonpath={.status.denied} {.status.wouldDeny}")
			return is(counts, step.counts)
		})
	}
}

func TestThePolicyOfHigherPriorityDecidesForItsNamespaces(t *testing.T) {
	must(t, "create", "namespace", "strict")
	must(t, "create", "namespace", "lax")
	policy(t, "lax", "{mode: Warn}")
	policy(t, "strict", "{priority: 10, mode: Enforce, match: {namespaceSelector: {matchLabels: {level: strict}}}}")
	eventually(t, "wait until the policies are in force", func() error { return is(comesTo(faulty("lax", "a")), "warned") })
	if err := is(comesTo(faulty("strict", "a")), "warned"); err != nil {
		t.Error(err)
	}
	must(t, "label", "namespace", "strict", "level=strict")
	eventually(t, "wait until the label counts", func() error { return is(comesTo(faulty("strict", "a")), "denied") })
	must(t, "label", "namespace", "strict", "level-")
	eventually(t, "wait until the label is gone", func() error { return is(comesTo(faulty("strict", "a")), "warned") })
}

func is(got, wanted string) error {
	if got != wanted {
		return fmt.Errorf("it is %q and not %q", got, wanted)
	}
	return nil
}
