package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestGangsThatMeet has two clusters with a placement group of three bundles each
// where Kubernetes has room for four workers: each gets a part of the room, or one
// all that it needs. The one that waits gives its part up, and is served when the
// other one has finished.
func TestGangsThatMeet(t *testing.T) {
	// Each head takes a little more than a CPU.
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 7, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	policy(t, w, "gangs", `{match: {kinds: [RayCluster]}, reconcile: {unschedulableSeconds: 20}}`)
	var clusters []*scaling.Cluster
	drivers := map[string]*scaling.Driver{}
	for _, name := range []string{"one", "other"} {
		c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 6}}}
		drivers[name] = drive(t, w, c)
		clusters = append(clusters, c)
	}
	begun := time.Now()
	for _, c := range clusters {
		do(t, drivers[c.Name], `group("gang", [{"CPU": 1}] * 3, "SPREAD")`)
	}
	left := clusters
	for len(left) > 0 {
		var whole *scaling.Cluster
		within(t, w, "a placement group is whole", func() error {
			for _, c := range left {
				if w.TaskGate.AtWork(batch(*c, "gang"), 3) == nil {
					whole = c
					return nil
				}
			}
			return fmt.Errorf("none of the placement groups that are left has all of its bundles")
		})
		t.Logf("the placement group of %s was whole %s after both had been asked for; %d workers were made for it",
			whole.Name, time.Since(begun).Round(100*time.Millisecond), len(w.EverWorkers(*whole, "")))
		rest := []*scaling.Cluster{}
		for _, c := range left {
			if c != whole {
				rest = append(rest, c)
			}
		}
		left = rest
		for _, c := range left {
			within(t, w, "the other gives its part up", func() error {
				return firstOf(w.HasWorkers(*c, "", 0), w.Said(c.Name, "CannotFit", "tried again at"))
			})
		}
		w.TaskGate.Release(batch(*whole, "gang"))
		do(t, drivers[whole.Name], `drop("gang")`)
		idle(t, w, *whole, 5)
	}
}
