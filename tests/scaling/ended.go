package scaling

import (
	"slices"
	"strings"
)

// timedOut is what `ray start` says in a container in which Ray's processes were started
// and no Ray node came within 30 seconds. It ends with an error then, KubeRay makes
// another pod, and no autoscaler has a part in either.
//
// It is what happens on a machine that is too busy: a raylet waits for the files in which
// its agents write their ports (Ray, `WaitForPersistedPort`), and ends when that takes
// long. Seen: an agent needed 20 seconds to start, and found its raylet dead.
const timedOut = "The current node timed out during startup"

// Ended are the records of containers in the world's namespace that ended by
// themselves, with an error.
func (w *World) Ended() []string { return w.Lab.Ended(w.Namespace, "*") }

// NeverStarted are those worker pods that a cluster has ever had in which Ray did not
// start: another pod was made for each of them.
func (w *World) NeverStarted(c Cluster, group string) []Seen {
	return slices.DeleteFunc(w.EverWorkers(c, group), func(pod Seen) bool { return !w.neverStarted(pod) })
}

// MadeWorkers are the worker pods that somebody has decided to make for a cluster: those
// that it has ever had, without the pods in whose place another one was made.
func (w *World) MadeWorkers(c Cluster, group string) []Seen {
	return slices.DeleteFunc(w.EverWorkers(c, group), w.neverStarted)
}

// Made is how many MadeWorkers there are.
func (w *World) Made(c Cluster, group string) int { return len(w.MadeWorkers(c, group)) }

func (w *World) neverStarted(pod Seen) bool {
	return slices.ContainsFunc(w.Lab.Ended(w.Namespace, pod.Name()), func(record string) bool {
		return strings.Contains(record, timedOut)
	})
}
