package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const (
	gapped = "gaps"
	// waves is how often the same tasks come, and wave is from one time to the next: longer than
	// the idle time of workers, so that who does not keep any has to make new ones.
	waves = 3
	wave  = 120 * time.Second
	// each is how many tasks of one CPU a wave has, and runs for how long each of them runs.
	each = 8
	runs = 8 * time.Second
	// sampled is how often the sizes of the pods are added up.
	sampled = 200 * time.Millisecond
)

// gapsCluster has workers of one CPU that may grow to four, with KubeRay's own idle time.
func (s *script) gapsCluster() scaling.Cluster {
	return scaling.Cluster{Name: s.name(gapped), Mode: s.mode, Idle: 60, Groups: []scaling.Group{
		{Name: gapped, CPU: 1, Max: 3, MaxCPU: 4, Custom: map[string]int{gapped: 100}},
	}}
}

// gaps runs the same tasks again and again, with gaps between them, and adds up
// how long they waited and how much CPU the pods had all the time.
func (s *script) gaps(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	var cores float64
	begin := time.Now()
	for i := range waves {
		batch := fmt.Sprintf("wave-%d", i)
		asked := time.Now()
		if err := d.Do(ctx, fmt.Sprintf(`hold(%q, %d, num_cpus=1, resources={%q: 1})`, batch, each, gapped)); err != nil {
			return err
		}
		for time.Since(begin) < time.Duration(i+1)*wave {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			cores += s.cores(c) * sampled.Seconds()
			for _, task := range s.w.TaskGate.Tasks(c.Name + ":" + batch) {
				if time.Since(task.Began) >= runs {
					s.w.TaskGate.ReleaseTask(task.Name)
				}
			}
		}
		tasks := s.w.TaskGate.Tasks(c.Name + ":" + batch)
		if len(tasks) != each {
			return fmt.Errorf("%d of %d tasks of %s have begun within %s", len(tasks), each, batch, wave)
		}
		for _, task := range tasks {
			s.got.waited[i] += task.Began.Sub(asked).Seconds() / each
			if task.Lost {
				s.got.harmed++
			}
		}
	}
	s.got.cpuSeconds = cores
	s.got.made = float64(len(s.w.EverWorkers(c, "")))
	return nil
}

// cores is what all workers may use now.
func (s *script) cores(c scaling.Cluster) float64 {
	sum := 0.0
	for _, pod := range s.w.Workers(c, "") {
		text, _ := pod.Get("spec.containers[0].resources.limits.cpu").(string)
		if cpu, err := strconv.ParseFloat(text, 64); err == nil {
			sum += cpu
		}
	}
	return sum
}
