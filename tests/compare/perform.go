package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

//go:embed workload.py
var workloadScript string

// sampled is how often the sizes of the pods are looked at.
const sampled = 200 * time.Millisecond

// settled is for how long a worker is to be ready before it counts as there: its Ray node
// joins after its container has started.
const settled = 15 * time.Second

// perform has workloads ask for what they ask for when it is time, and adds up
// what that leads to.
func (t *turn) perform(ctx context.Context, c scaling.Cluster, d *scaling.Driver, of []workload) error {
	// In the driver's own names, which an order by itself only has a copy of.
	source, err := json.Marshal(workloadScript)
	if err != nil {
		return fmt.Errorf("encode the workloads: %w", err)
	}
	if err := d.Do(ctx, fmt.Sprintf("import __main__; exec(%s, __main__.__dict__)", source)); err != nil {
		return err
	}
	if err := t.awaitHeadroom(ctx, c); err != nil {
		return err
	}
	begun := time.Now()
	asked := map[string]time.Time{}
	meters := make([]meter, len(of))
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	for left := true; left; {
		left = false
		for i, w := range of {
			for _, a := range w.acts {
				if _, done := asked[a.batch]; done || time.Since(begun) < a.at {
					continue
				}
				t.say("%s: %d at once", a.batch, a.count)
				t.w.Note(c.Name, a.batch+" is asked for")
				for _, batch := range []string{a.batch, a.batch + "-ended"} {
					t.w.TaskGate.Release(c.Name + ":" + batch)
				}
				asked[a.batch] = time.Now()
				if err := d.Do(ctx, a.ask); err != nil {
					return err
				}
			}
			if now := time.Now(); now.Sub(begun) < w.end() {
				left = true
				if now.Sub(begun) >= w.acts[0].at {
					meters[i].see(now, t.cores(c, w.name))
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.got.outcomes = map[string]outcome{}
	for i, w := range of {
		found, err := t.outcome(ctx, c, d, w, asked)
		if err != nil {
			return err
		}
		found.cpuSeconds = meters[i].sum
		t.got.outcomes[w.name] = found
		t.say("%s: %s", w.name, found)
	}
	calls, err := t.calls(c, begun)
	if err != nil {
		return err
	}
	t.got.writes = written(calls)
	// Fewer pods are fewer writes of those who make, place and run them. There is no other
	// cluster meanwhile.
	everybody, err := scaling.Calls(t.w.Lab, begun, func(scaling.Call) bool { return true })
	if err != nil {
		return err
	}
	t.got.ofAll = sum(written(everybody))
	t.say("writes: %v; of everybody: %.0f", t.got.writes, t.got.ofAll)
	return nil
}

// uncounted are objects whose writes do not follow from how a cluster is scaled: Leases and Events from
// what watches it and who reads about it, and what kubelets say of their nodes from how long it takes.
var uncounted = []string{"leases", "events", "nodes", "nodes/status"}

// written counts the requests that change something, by resource.
func written(calls []scaling.Call) map[string]float64 {
	found := map[string]float64{}
	for _, call := range calls {
		reads := slices.Contains([]string{"get", "list", "watch"}, call.Verb)
		if !reads && !slices.Contains(uncounted, call.Object) {
			found[call.Object]++
		}
	}
	return found
}

// awaitHeadroom waits until the workers that a policy keeps ready are, as they are for work
// that comes to a cluster at any time.
func (t *turn) awaitHeadroom(ctx context.Context, c scaling.Cluster) error {
	if t.policy == "" || t.mode == scaling.Ray {
		return nil
	}
	return t.w.UntilWithin(ctx, scaling.Patience, "the headroom of the policy is ready", func() error {
		workers := t.w.Workers(c, "")
		if len(workers) == 0 {
			return errors.New("there are no workers")
		}
		for _, pod := range workers {
			if pod.Ready.IsZero() || time.Since(pod.Ready) < settled {
				return fmt.Errorf("%s has not been ready for %s", pod.Name(), settled)
			}
		}
		return nil
	})
}

// outcome is what has become of a workload's tasks and pods.
func (t *turn) outcome(ctx context.Context, c scaling.Cluster, d *scaling.Driver, w workload, asked map[string]time.Time) (outcome, error) {
	var acts []fate
	for _, a := range w.acts {
		var found fate
		if a.byClients {
			var err error
			if found, err = heard(ctx, d, a); err != nil {
				return outcome{}, err
			}
		} else {
			batch := c.Name + ":" + a.batch
			found = checked(asked[a.batch], time.Now(), a.count, t.w.TaskGate.Tasks(batch), t.w.TaskGate.Tasks(batch+"-ended"))
		}
		found.again = a.at > w.acts[0].at
		acts = append(acts, found)
		t.log.tasks(a.batch, found)
	}
	found := summed(acts)
	found.made = float64(t.w.Made(c, w.name))
	for _, pod := range t.w.EverWorkers(c, w.name) {
		found.restarted += restarts(pod.Object)
	}
	return found, nil
}

// heard is what the clients of a Serve deployment have found.
func heard(ctx context.Context, d *scaling.Driver, a act) (fate, error) {
	// What Python prints of numbers in lists is JSON too.
	said, err := d.Eval(ctx, fmt.Sprintf(`value = answered[%q][0]`, a.batch))
	if err != nil {
		return fate{}, err
	}
	return answers(said, a.count)
}

// cores is what the workers of a group may use now. A pod that is about to end has
// its share of the node until it is gone.
func (t *turn) cores(c scaling.Cluster, group string) float64 {
	sum := 0.0
	for _, pod := range t.w.EverWorkers(c, group) {
		if pod.Gone.IsZero() {
			sum += limits(pod.Object)
		}
	}
	return sum
}
