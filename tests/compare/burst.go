package main

import (
	"context"
	"fmt"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const bursting = "bursts"

// burstCluster has a group for each burst, so that none is counted with another.
func (t *turn) burstCluster() scaling.Cluster {
	c := scaling.Cluster{Name: t.name("burst"), Mode: t.mode, Idle: 3600, Unmanned: true}
	for _, b := range bursts {
		c.Groups = append(c.Groups, scaling.Group{Name: b.group, CPU: 1, Max: b.pods, Custom: map[string]int{b.group: 1}})
	}
	return c
}

// burst asks for pods again and again, at first from a cluster at rest.
func (t *turn) burst(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
	if err := t.idle(ctx, c); err != nil {
		return err
	}
	for i, b := range bursts {
		n := b.pods
		begin := time.Now()
		if err := d.Do(ctx, b.ask); err != nil {
			return err
		}
		err := t.w.Until(ctx, fmt.Sprintf("%d pods are asked for", n), func() error {
			object, err := t.w.RayCluster(c)
			if err != nil {
				return err
			}
			if asked := object.Get(fmt.Sprintf("spec.workerGroupSpecs[%d].replicas", i)); asked != float64(n) {
				return fmt.Errorf("replicas is %v", asked)
			}
			t.got.asked[i] = object.Last.Sub(begin).Seconds()
			return nil
		})
		if err != nil {
			return err
		}
		err = t.w.Until(ctx, fmt.Sprintf("%d pods are made", n), func() error { return t.w.HasWorkers(c, b.group, n) })
		if err != nil {
			return err
		}
		pods := t.w.Workers(c, b.group)
		t.got.last[i] = pods[n-1].First.Sub(begin).Seconds()
		calls, err := t.calls(c, begin)
		if err != nil {
			return err
		}
		for _, call := range calls {
			if call.Verb == "patch" && call.Object == "rayclusters" {
				t.got.patches[i]++
			}
		}
	}
	var err error
	t.got.memory, err = t.memory(c)
	return err
}

// idle counts what is asked of the API server while nothing happens. A Lease is
// the process's, whatever it looks after; everything else is about the cluster.
func (t *turn) idle(ctx context.Context, c scaling.Cluster) error {
	begin := time.Now()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
		return ctx.Err()
	}
	calls, err := t.calls(c, begin)
	for _, call := range calls {
		if call.Object == "leases" {
			t.got.ownCalls += float64(time.Minute) / float64(watched)
		} else {
			t.got.idleCalls += float64(time.Minute) / float64(watched)
		}
	}
	return err
}
