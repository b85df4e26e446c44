package main

import (
	"context"
	"fmt"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// burstCluster has a group for each burst, so that none is counted with another.
func (s *script) burstCluster() scaling.Cluster {
	c := scaling.Cluster{Name: s.name("burst"), Mode: s.mode, Idle: 3600, Unmanned: true}
	for _, b := range bursts {
		c.Groups = append(c.Groups, scaling.Group{Name: b.group, CPU: 1, Max: b.pods, Custom: map[string]int{b.group: 1}})
	}
	return c
}

// burst asks for pods again and again, at first from a cluster at rest.
func (s *script) burst(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
	if err := s.idle(ctx, c); err != nil {
		return err
	}
	for i, b := range bursts {
		n := b.pods
		begin := time.Now()
		if err := d.Do(ctx, b.ask); err != nil {
			return err
		}
		err := s.w.Until(ctx, fmt.Sprintf("%d pods are asked for", n), func() error {
			object, err := s.w.RayCluster(c)
			if err != nil {
				return err
			}
			if asked := object.Get(fmt.Sprintf("spec.workerGroupSpecs[%d].replicas", i)); asked != float64(n) {
				return fmt.Errorf("replicas is %v", asked)
			}
			s.got.asked[i] = object.Last.Sub(begin).Seconds()
			return nil
		})
		if err != nil {
			return err
		}
		err = s.w.Until(ctx, fmt.Sprintf("%d pods are made", n), func() error { return s.w.HasWorkers(c, b.group, n) })
		if err != nil {
			return err
		}
		pods := s.w.Workers(c, b.group)
		s.got.last[i] = pods[n-1].First.Sub(begin).Seconds()
		calls, err := s.calls(c, begin)
		if err != nil {
			return err
		}
		for _, call := range calls {
			if call.Verb == "patch" && call.Object == "rayclusters" {
				s.got.patches[i]++
			}
		}
	}
	var err error
	s.got.memory, err = s.memory(c)
	return err
}

// idle counts what is asked of the API server while nothing happens. A Lease is
// the process's, whatever it looks after; everything else is about the cluster.
func (s *script) idle(ctx context.Context, c scaling.Cluster) error {
	begin := time.Now()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
		return ctx.Err()
	}
	calls, err := s.calls(c, begin)
	for _, call := range calls {
		if call.Object == "leases" {
			s.got.ownCalls += float64(time.Minute) / float64(watched)
		} else {
			s.got.idleCalls += float64(time.Minute) / float64(watched)
		}
	}
	return err
}
