package policy_test

import "testing"

func TestThePolicyOfHigherPriorityDecidesForItsNamespaces(t *testing.T) {
	lax, strict := namespace(t, "lax"), namespace(t, "strict")
	policy(t, "lax", "{mode: Warn}")
	policy(t, "strict", "{priority: 10, mode: Enforce, match: {namespaceSelector: {matchLabels: {level: strict}}}}")
	eventually(t, "wait until the policies are in force", func() error { return is(comesTo(faulty(lax, "a")), "warned") })
	if err := is(comesTo(faulty(strict, "a")), "warned"); err != nil {
		t.Error(err)
	}
	must(t, "label", "namespace", strict, "level=strict")
	eventually(t, "wait until the label counts", func() error { return is(comesTo(faulty(strict, "a")), "denied") })
	must(t, "label", "namespace", strict, "level-")
	eventually(t, "wait until the label is gone", func() error { return is(comesTo(faulty(strict, "a")), "warned") })
}
