package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	// held is whether Rayfit is to ask for all pods of it within a second, at once.
	held bool
}

// bursts come one after the other.
var bursts = [...]burst{
	tasks(1, "demand for a pod", false),
	tasks(10, "demand for 10 pods", false),
	tasks(100, "demand for 100 pods", true),
	{100, "gang", `kept["gang"] = [placement_group([{"CPU": 1, "gang": 1}] * 100, strategy="SPREAD")]`, "a placement group of 100", true},
}

func tasks(pods int, what string, held bool) burst {
	group := fmt.Sprintf("b%d", pods)
	return burst{pods, group, fmt.Sprintf(`hold(%q, %d, num_cpus=1, resources={%q: 1})`, group, pods, group), what, held}
}

// watched is for how long calls are counted while nothing happens.
const watched = 20 * time.Second

// figures are what one round found for one scaler. Times are seconds.
type figures struct {
	asked, last [len(bursts)]float64 // from demand until all pods of a burst are asked for, and the last one is made
	patches     [len(bursts)]float64 // requests that change something, for each burst
	idleCalls   float64              // requests a minute about the cluster while nothing happens
	ownCalls    float64              // the same, of the process for itself, however many clusters it has
	memory      float64              // MiB, after the bursts
	growth      [3]float64           // from demand until so many tasks run on the growing pod
	grown       float64              // from demand until Kubernetes has grown the pod
	outcomes    map[string]outcome   // by workload
	writes      map[string]float64   // requests that change something during all workloads, by what they change
	ofAll       float64              // the same of everybody: of KubeRay, schedulers and kubelets too
}

// turn is that of one scaler in one round.
type turn struct {
	w          *scaling.World
	mode       scaling.Mode
	policy     string // of Rayfit in mode central, "" for none
	round      int
	controller *scaling.Controller
	progress   io.Writer
	log        *logs
	got        *figures
}

// scripts are the names of all that can be run.
func scripts() []string {
	names := []string{bursting, growing}
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

// measure runs the scripts of some names once.
func (t *turn) measure(ctx context.Context, names []string) (err error) {
	if t.mode == scaling.Central {
		if t.controller, err = scaling.StartController(ctx, t.w.Lab, ""); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.controller.Stop()) }()
		if t.policy != "" {
			if _, _, err := t.w.Lab.Apply(t.policy); err != nil {
				return err
			}
		}
	}
	if slices.Contains(names, bursting) {
		if err := t.inCluster(ctx, t.burstCluster(), t.burst); err != nil {
			return err
		}
	}
	if slices.Contains(names, growing) {
		if err := t.inCluster(ctx, t.growthCluster(), t.grow); err != nil {
			return err
		}
	}
	of := chosen(names)
	if len(of) == 0 {
		return nil
	}
	return t.inCluster(ctx, t.workloadCluster(of), func(ctx context.Context, c scaling.Cluster, d *scaling.Driver) error {
		return t.perform(ctx, c, d, of)
	})
}

// inCluster runs a script in a cluster of its own, with a driver in it.
func (t *turn) inCluster(ctx context.Context, c scaling.Cluster, do func(context.Context, scaling.Cluster, *scaling.Driver) error) error {
	begin := time.Now()
	t.say("cluster %s", c.Name)
	if err := t.w.Create(ctx, &c); err != nil {
		return err
	}
	d, err := t.w.Drive(ctx, c)
	if err != nil {
		return err
	}
	err = do(ctx, c, d)
	err = errors.Join(err, t.log.keep(t, c))
	d.Close()
	if err != nil {
		return err
	}
	if err := t.w.Delete(ctx, c); err != nil {
		return err
	}
	t.say("cluster %s is done after %.0f s", c.Name, time.Since(begin).Seconds())
	return nil
}

// say tells whoever waits how far it is.
func (t *turn) say(format string, args ...any) {
	fmt.Fprintf(t.progress, "%s round %d, %s: %s\n", time.Now().Format(time.TimeOnly), t.round+1, t.mode, fmt.Sprintf(format, args...))
}

func (t *turn) name(what string) string { return fmt.Sprintf("%s-%s-%d", what, t.mode, t.round) }

// calls are those of the scaler of a cluster, after a moment.
func (t *turn) calls(c scaling.Cluster, after time.Time) ([]scaling.Call, error) {
	by := scaling.ByHead(c.Name)
	if t.mode == scaling.Central {
		by = scaling.ByRayfit
	}
	return scaling.Calls(t.w.Lab, after, by)
}

// memory is what the scaler's process holds, in MiB.
func (t *turn) memory(c scaling.Cluster) (float64, error) {
	pid := 0
	if t.controller != nil {
		pid = t.controller.PID()
	} else {
		var err error
		if pid, err = autoscalerOf(c, t.w.Lab.Dir()); err != nil {
			return 0, err
		}
	}
	return rig.Memory(pid, "VmRSS")
}
