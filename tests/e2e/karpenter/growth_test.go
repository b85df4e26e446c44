package karpenter_test

import (
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// TestMachinesThatFitThePods has more tasks than pods of a group take that have not
// grown, and Karpenter makes machines for what pods request, without room to grow. The
// first pods that start there show that, and as many more come as the tasks need.
func TestMachinesThatFitThePods(t *testing.T) {
	t.Parallel()
	const tasks = 16
	for _, one := range []struct {
		name, policy string
		group        scaling.Group
	}{
		{"fits", `{}`, scaling.Group{Name: "grow", CPU: 2, MaxCPU: 8, Max: 12}},
		{"fits-fixed", `{}`, scaling.Group{Name: "fixed", CPU: 2, Max: 12}},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			nodePool(t, one.name, 20*time.Second, never, "lab-2", "lab-4", "lab-8", "lab-16")
			policy(t, one.name, `{match: {kinds: [RayCluster], names: [`+one.name+`]}, reconcile: `+one.policy+`}`)
			c := &scaling.Cluster{Name: one.name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{in(one.name, one.group)}}
			ray := begin(t, c)
			begun := time.Now()
			ray.Ask(tasks, map[string]float64{"CPU": 1})
			until(t, "every task has a node", func() error { return placed(ray) })
			launches := 0
			for _, event := range shared.Events(c.Name) {
				if strings.HasPrefix(event, "ScaledUp:") {
					launches++
				}
			}
			t.Logf("%d tasks were placed after %s on %d pods, which were launched in %d rounds", tasks,
				since(begun, time.Now()), len(shared.EverWorkers(*c, "")), launches)
			// Two pods are launched because they could grow to eight CPUs each, and six more when they cannot,
			// one of them sooner if only one of the two is seen on the machine at first.
			if one.name == "fits" {
				if launches > 3 {
					t.Errorf("pods were launched in %d rounds", launches)
				}
				if err := made(*c, "grow", 8); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
