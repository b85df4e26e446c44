package main

import (
	"fmt"
	"slices"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// workload is a script with a worker group of its own. All of them run in one
// cluster, one after the other: while one leaves its pods idle, which is what
// takes long, another has its turn.
type workload struct {
	name, what string
	max        int // pods of the group, which grow in place from 1 CPU to 4
	acts       []act
	// lasts is for how long its pods are counted, from its first act on.
	lasts time.Duration
}

// act is something that a workload asks for at once.
type act struct {
	at    time.Duration // from the beginning of a run of all workloads
	batch string
	count int // tasks, or requests
	// by is whether the requests are counted by their clients; tasks check in.
	byClients bool
	ask       string // what the driver is told, see workload.py
}

// end is when the workload's pods are not counted any more.
func (w workload) end() time.Duration { return w.acts[0].at + w.lasts }

const (
	// idle is for how many seconds a worker may be idle: KubeRay's own figure.
	idle = 60
	// largest is to how many CPUs the workers of one CPU may grow.
	largest = 4

	gapped  = "gaps"
	serving = "serve"
)

// workloads in the order in which they begin. Acts of different workloads are at
// least 25 s apart, by when the pods for the first have started with any scaler, so
// that they do not wait for each other's share of the machine.
var workloads = []workload{
	{
		// The gap is longer than what a worker may be idle, so that who does not keep any
		// has to make new ones.
		gapped, "bursts of 8 tasks, 120 s apart", 3, []act{
			mix(0, "gaps-1", gapped, kind{8, 1, 8}),
			mix(120, "gaps-2", gapped, kind{8, 1, 8}),
			mix(240, "gaps-3", gapped, kind{8, 1, 8}),
		}, 360 * time.Second,
	},
	{
		// One task is much longer than the others. The second burst comes while an
		// autoscaler that only waits has removed nothing yet.
		"mixed", "tasks of half a CPU to 4 CPUs, 3 to 45 s long, twice", 4, []act{
			mix(30, "mixed-1", "mixed", kind{4, 1, 6}, kind{2, 2, 8}, kind{1, 4, 6}, kind{2, 0.5, 3}, kind{1, 1, 45}),
			mix(62, "mixed-2", "mixed", kind{4, 1, 6}, kind{2, 2, 8}, kind{1, 4, 6}, kind{2, 0.5, 3}),
		}, 160 * time.Second,
	},
	{
		"group", "placement groups: 4 bundles together, 3 apart", 4, []act{
			gang(88, "group-pack", "group", 4, 1, "PACK"),
			gang(88, "group-spread", "group", 3, 2, "STRICT_SPREAD"),
		}, 120 * time.Second,
	},
	{
		"actors", "a pool of 6 actors for 18 items, twice, 150 s apart", 3, []act{
			pool(155, "actors-1", "actors", 6, 18),
			pool(305, "actors-2", "actors", 6, 18),
		}, 205 * time.Second,
	},
	{
		// The load comes again before idle workers are removed.
		serving, "a Serve deployment, 12 clients with 20 requests each, twice", 3, []act{
			requests(185, "serve-1", serving, 12, 20),
			requests(270, "serve-2", serving, 12, 20),
		}, 175 * time.Second,
	},
}

// kind is a number of equal tasks.
type kind struct {
	count   int
	cpus    float64
	seconds int
}

func mix(at int, batch, group string, kinds ...kind) act {
	list, count := "", 0
	for _, k := range kinds {
		list += fmt.Sprintf("(%d, %g, %d), ", k.count, k.cpus, k.seconds)
		count += k.count
	}
	return act{at: seconds(at), batch: batch, count: count, ask: fmt.Sprintf("mix(%q, %q, [%s])", batch, group, list)}
}

func gang(at int, batch, group string, bundles, cpus int, strategy string) act {
	ask := fmt.Sprintf("gang(%q, %q, %d, %d, 8, %q)", batch, group, bundles, cpus, strategy)
	return act{at: seconds(at), batch: batch, count: bundles, ask: ask}
}

func pool(at int, batch, group string, actors, items int) act {
	return act{at: seconds(at), batch: batch, count: items, ask: fmt.Sprintf("pool(%q, %q, %d, %d, 2)", batch, group, actors, items)}
}

func requests(at int, batch, group string, clients, each int) act {
	ask := fmt.Sprintf("load(%q, %q, %d, %d, 0.25)", batch, group, clients, each)
	return act{at: seconds(at), batch: batch, count: clients * each, byClients: true, ask: ask}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// chosen are the workloads of some names, moved so that the first begins at once.
func chosen(names []string) []workload {
	var found []workload
	for _, w := range workloads {
		if slices.Contains(names, w.name) {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		return nil
	}
	ahead := found[0].acts[0].at
	for i := range found {
		found[i].acts = slices.Clone(found[i].acts)
		for j := range found[i].acts {
			found[i].acts[j].at -= ahead
		}
	}
	return found
}

// cluster has a group for each workload.
func (t *turn) workloadCluster(of []workload) scaling.Cluster {
	c := scaling.Cluster{Name: t.name("work"), Mode: t.mode, Idle: idle}
	for _, w := range of {
		c.Groups = append(c.Groups, scaling.Group{Name: w.name, CPU: 1, Max: w.max, MaxCPU: largest, Custom: map[string]int{w.name: 100}})
	}
	return c
}
