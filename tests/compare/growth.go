package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const growing = "grow"

// growthCluster has one real worker of one CPU that may grow to three.
func (s *script) growthCluster() scaling.Cluster {
	return scaling.Cluster{Name: s.name(growing), Mode: s.mode, Idle: 3600, Groups: []scaling.Group{
		{Name: growing, CPU: 1, Min: 1, Max: 2, MaxCPU: 3, Custom: map[string]int{growing: 10}},
	}}
}

// hasGrown is nil once Kubernetes says that the container has all that it may grow to.
func (s *script) hasGrown(c scaling.Cluster) error {
	for _, pod := range s.w.Workers(c, growing) {
		if pod.Get("status.containerStatuses[0].resources.limits.cpu") == "3" {
			return nil
		}
	}
	return errors.New("no pod has grown")
}

// grow asks for three tasks of one CPU, once the worker has shown by a task of
// no CPU that Ray runs in it.
func (s *script) grow(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
	batch := func(name string) string { return c.Name + ":" + name }
	if err := d.Do(ctx, fmt.Sprintf(`hold("probe", 1, num_cpus=0, resources={%q: 1})`, growing)); err != nil {
		return err
	}
	if err := s.w.Until(ctx, "the worker is there", func() error { return s.w.TaskGate.AtWork(batch("probe"), 1) }); err != nil {
		return err
	}
	begin := time.Now()
	grown := make(chan error, 1)
	go func() {
		err := s.w.Until(ctx, "the pod has three CPUs", func() error { return s.hasGrown(c) })
		s.got.grown = time.Since(begin).Seconds()
		grown <- err
	}()
	if err := d.Do(ctx, fmt.Sprintf(`hold("three", 3, num_cpus=1, resources={%q: 1})`, growing)); err != nil {
		return err
	}
	if err := s.w.Until(ctx, "three tasks run", func() error { return s.w.TaskGate.AtWork(batch("three"), 3) }); err != nil {
		return err
	}
	if err := <-grown; err != nil {
		return err
	}
	for i, task := range s.w.TaskGate.Tasks(batch("three")) {
		s.got.growth[i] = task.Began.Sub(begin).Seconds()
	}
	if made := s.w.Made(c, ""); made != 1 {
		return fmt.Errorf("%d workers were made, so the figures are not of growing in place", made)
	}
	s.w.TaskGate.Release(batch("probe"))
	s.w.TaskGate.Release(batch("three"))
	return nil
}
