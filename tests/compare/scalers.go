package main

import (
	"context"
	"fmt"
	"time"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// modes in the order of the table's columns.
var modes = []scaling.Mode{scaling.Ray, scaling.Central, scaling.Sidecar}

// burst is demand for so many pods of one group, and how a driver makes it.
type burst struct {
	pods       int
	group, ask string
	what       string
	goal       string
}

// bursts come one after the other.
var bursts = [...]burst{
	tasks(1, "demand for a pod", ""),
	tasks(10, "demand for 10 pods", ""),
	tasks(100, "demand for 100 pods", "one patch within 1 s"),
	{100, "gang", `kept["gang"] = [placement_group([{"CPU": 1, "gang": 1}] * 100, strategy="SPREAD")]`, "a placement group of 100", "one patch within 1 s"},
}

func tasks(pods int, what, goal string) burst {
	group := fmt.Sprintf("b%d", pods)
	return burst{pods, group, fmt.Sprintf(`hold(%q, %d, num_cpus=1, resources={%q: 1})`, group, pods, group), what, goal}
}

// watched is for how long calls are counted while nothing happens.
const watched = 30 * time.Second

// figures are what one round found for one scaler. Times are seconds.
type figures struct {
	asked, last [len(bursts)]float64 // from demand until all pods of a burst are asked for, and the last one is made
	patches     [len(bursts)]float64 // requests that change something, for each burst
	idleCalls   float64              // requests a minute about the cluster while nothing happens
	ownCalls    float64              // the same, of the process for itself, however many clusters it has
	memory      float64              // MiB, after the bursts
	growth      [3]float64           // from demand until so many tasks run on the growing pod
	waited      [waves]float64       // the mean wait of tasks that come again and again
	cpuSeconds  float64              // what the workers had meanwhile
	made        float64              // the workers that were made for them
	harmed      float64              // those of the tasks that were lost
	grown       float64              // from demand until Kubernetes has grown the pod
}

// measure runs all scripts once, or only the one that is named.
func measure(ctx context.Context, w *scaling.World, mode scaling.Mode, only string, round int) (figures, error) {
	var got figures
	var controller *scaling.Controller
	if mode == scaling.Central {
		var err error
		if controller, err = scaling.StartController(ctx, w.Lab, ""); err != nil {
			return got, err
		}
		defer func() { _ = controller.Stop() }()
	}
	s := script{w: w, mode: mode, round: round, controller: controller, got: &got}
	for _, part := range []struct {
		name    string
		cluster scaling.Cluster
		do      func(context.Context, scaling.Cluster, *scaling.Driver) error
	}{
		{"bursts", s.burstCluster(), s.burst},
		{growing, s.growthCluster(), s.grow},
		{gapped, s.gapsCluster(), s.gaps},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := s.inCluster(ctx, part.cluster, part.do); err != nil {
			return got, err
		}
	}
	return got, nil
}

// script is one round of one scaler.
type script struct {
	w          *scaling.World
	mode       scaling.Mode
	round      int
	controller *scaling.Controller
	got        *figures
}

// inCluster runs a script in a cluster of its own, with a driver in it.
func (s *script) inCluster(ctx context.Context, c scaling.Cluster, do func(context.Context, scaling.Cluster, *scaling.Driver) error) error {
	if err := s.w.Create(ctx, &c); err != nil {
		return err
	}
	d, err := s.w.Drive(ctx, c)
	if err != nil {
		return err
	}
	err = do(ctx, c, d)
	d.Close()
	if err != nil {
		return err
	}
	return s.w.Delete(ctx, c)
}

func (s *script) name(what string) string { return fmt.Sprintf("%s-%s-%d", what, s.mode, s.round) }

// calls are those of the scaler of a cluster, after a moment.
func (s *script) calls(c scaling.Cluster, after time.Time) ([]scaling.Call, error) {
	by := scaling.ByHead(c.Name)
	if s.mode == scaling.Central {
		by = scaling.ByRayfit
	}
	return scaling.Calls(s.w.Lab, after, by)
}

// memory is what the scaler's process holds, in MiB.
func (s *script) memory(c scaling.Cluster) (float64, error) {
	pid := 0
	if s.controller != nil {
		pid = s.controller.PID()
	} else {
		var err error
		if pid, err = autoscalerOf(c, s.w.Lab.Dir()); err != nil {
			return 0, err
		}
	}
	return rig.Memory(pid, "VmRSS")
}
