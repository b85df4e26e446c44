package karpenter_test

import (
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// one is the demand of a task that takes a whole worker of two CPUs.
var one = map[string]float64{"CPU": 2}

// TestNodesComeForPods has tasks that fit two groups. For the pods of the first one
// there is no Kubernetes node, and the one that Karpenter makes takes longer than
// pods without a node are waited for; for those of the second one there is room at
// once. The demand stays with the first, because Karpenter says that a node comes.
func TestNodesComeForPods(t *testing.T) {
	t.Parallel()
	nodePool(t, "late", 40*time.Second, never, "lab-2", "lab-4", "lab-8")
	policy(t, "patient", `{match: {kinds: [RayCluster], names: [patient]}, reconcile: {unschedulableSeconds: 15}}`)
	c := &scaling.Cluster{Name: "patient", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
		in("late", scaling.Group{Name: "a-late", CPU: 2, Max: 4}),
		{Name: "b-ready", CPU: 2, Max: 4},
	}}
	ray := begin(t, c)
	begun := time.Now()
	ray.Ask(2, one)
	until(t, "Karpenter has a node for each pod", func() error {
		if err := made(*c, "a-late", 2); err != nil {
			return err
		}
		for _, pod := range shared.EverWorkers(*c, "a-late") {
			if err := shared.Said(pod.Name(), "Nominated", "nodeclaim/"); err != nil {
				return err
			}
		}
		return nil
	})
	nominated := time.Now()
	first := shared.EverWorkers(*c, "")[0]
	until(t, "a snapshot has what Karpenter says", func() error {
		return says(t, *c, "record", "by: karpenter", "node: coming", "Pod should schedule on: nodeclaim/")
	})
	until(t, "every task has a node", func() error { return placed(ray) })
	t.Logf("the pods were made %s after the demand, Karpenter had a node for them after %s, and the tasks were placed after %s",
		since(begun, first.First), since(begun, nominated), since(begun, time.Now()))
	if waited := time.Since(first.First); waited < 30*time.Second {
		t.Errorf("the pods waited for %s only, which shows nothing", waited)
	}
	for group, count := range map[string]int{"a-late": 2, "b-ready": 0} {
		if err := made(*c, group, count); err != nil {
			t.Error(err)
		}
	}
	if claims := nodeClaims(t, "late"); len(claims) > 2 {
		t.Errorf("the NodeClaims are %v for two pods", claims)
	}
}

// TestNoPoolHolds has tasks that fit two groups, of which no NodePool can have a
// machine for the first: Karpenter says so, and the demand goes to the second one at
// once, and not only after the three minutes for which pods without a node are
// waited for.
func TestNoPoolHolds(t *testing.T) {
	t.Parallel()
	nodePool(t, "plain", 0, never, "lab-2")
	const resources = "template.spec.containers[0].resources."
	c := &scaling.Cluster{Name: "homeless", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
		in("plain", scaling.Group{Name: "a-nowhere", CPU: 2, Max: 4, More: map[string]any{
			resources + "requests[example.com/absent]": "1", resources + "limits[example.com/absent]": "1",
		}}),
		in("plain", scaling.Group{Name: "b-held", CPU: 2, Max: 4}),
	}}
	ray := begin(t, c)
	begun := time.Now()
	ray.Ask(1, one)
	until(t, "Karpenter says that it has no node", func() error {
		if err := made(*c, "a-nowhere", 1); err != nil {
			return err
		}
		return shared.Said(shared.EverWorkers(*c, "a-nowhere")[0].Name(), "FailedScheduling", "Failed to schedule pod")
	})
	refused := time.Now()
	for _, command := range []string{"status", "plan"} {
		until(t, "rayfit "+command+" says why", func() error { return says(t, *c, command, "and karpenter says that none comes: ") })
	}
	until(t, "the task has a node", func() error { return placed(ray) })
	t.Logf("Karpenter had no node %s after the demand, the pod of the other group was made after %s, and the task was placed after %s",
		since(begun, refused), since(begun, shared.EverWorkers(*c, "b-held")[0].First), since(begun, time.Now()))
	if err := shared.Said(c.Name, "Problem", `karpenter says that none comes: "Failed to schedule pod`); err != nil {
		t.Error(err)
	}
	if moved := shared.EverWorkers(*c, "b-held")[0].First.Sub(refused); moved > 30*time.Second {
		t.Errorf("the demand went to the other group %s after Karpenter had refused", moved)
	}
	// What follows goes there at once.
	again := time.Now()
	ray.Ask(1, one)
	until(t, "the next task has a node", func() error { return placed(ray) })
	t.Logf("the next task was placed after %s", since(again, time.Now()))
	for group, count := range map[string]int{"a-nowhere": 1, "b-held": 2} {
		if err := made(*c, group, count); err != nil {
			t.Error(err)
		}
	}
	for name, kind := range nodeClaims(t, "plain") {
		if kind != "lab-2" {
			t.Error(fmt.Errorf("NodeClaim %s is of type %q", name, kind))
		}
	}
}
