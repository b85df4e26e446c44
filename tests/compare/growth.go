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
func (t *turn) growthCluster() scaling.Cluster {
	return scaling.Cluster{Name: t.name(growing), Mode: t.mode, Idle: 3600, Groups: []scaling.Group{
		{Name: growing, CPU: 1, Min: 1, Max: 2, MaxCPU: 3, Custom: map[string]int{growing: 10}},
	}}
}

// hasGrown is nil once Kubernetes says that the container has all that it may grow to.
func (t *turn) hasGrown(c scaling.Cluster) error {
	for _, pod := range t.w.Workers(c, growing) {
		if pod.Get("status.containerStatuses[0].resources.limits.cpu") == "3" {
			return nil
		}
	}
	return errors.New("no pod has grown")
}

// grow asks for three tasks of one CPU, once the worker has shown by a task of
// no CPU that Ray runs in it.
func (t *turn) grow(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
	batch := func(name string) string { return c.Name + ":" + name }
	if err := d.Do(ctx, fmt.Sprintf(`hold("probe", 1, num_cpus=0, resources={%q: 1})`, growing)); err != nil {
		return err
	}
	if err := t.w.Until(ctx, "the worker is there", func() error { return t.w.TaskGate.AtWork(batch("probe"), 1) }); err != nil {
		return err
	}
	begin := time.Now()
	grown := make(chan error, 1)
	go func() {
		err := t.w.Until(ctx, "the pod has three CPUs", func() error { return t.hasGrown(c) })
		t.got.grown = time.Since(begin).Seconds()
		grown <- err
	}()
	if err := d.Do(ctx, fmt.Sprintf(`hold("three", 3, num_cpus=1, resources={%q: 1})`, growing)); err != nil {
		return err
	}
	if err := t.w.Until(ctx, "three tasks run", func() error { return t.w.TaskGate.AtWork(batch("three"), 3) }); err != nil {
		return err
	}
	if err := <-grown; err != nil {
		return err
	}
	for i, task := range t.w.TaskGate.Tasks(batch("three")) {
		t.got.growth[i] = task.Began.Sub(begin).Seconds()
	}
	if made := t.w.Made(c, ""); made != 1 {
		return fmt.Errorf("%d workers were made, so the figures are not of growing in place", made)
	}
	t.w.TaskGate.Release(batch("probe"))
	t.w.TaskGate.Release(batch("three"))
	return nil
}
