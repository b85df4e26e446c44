package scaling

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/rig"
)

// history is what was seen to happen in a world, a line for each change that
// matters to scaling: a test that fails is then understood without a second run.
type history struct {
	mu    sync.Mutex
	begun time.Time
	last  map[string]string // by object: how it was described last
	lines []string
}

// longestHistory is how many lines are kept, the newest of them.
const longestHistory = 1000

// note returns what notes an object of a kind each time its description changes.
// What has no description is left out.
func (h *history) note(kind string, describe func(rig.Object) string) func(rig.Object, bool) {
	return func(o rig.Object, gone bool) {
		said := describe(o)
		if gone && said != "" {
			said = "gone"
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.last == nil {
			h.last = map[string]string{}
		}
		key := kind + "/" + fmt.Sprint(o.Get("metadata.uid"))
		if said == "" || h.last[key] == said {
			return
		}
		h.last[key] = said
		name := o.Name()
		if about := o.Get("regarding.name"); about != nil {
			name = fmt.Sprint(about)
		}
		h.add(kind, name, said)
	}
}

// add adds a line; the caller holds the lock.
func (h *history) add(kind, name, said string) {
	if h.begun.IsZero() {
		h.begun = time.Now()
	}
	if len(h.lines) == longestHistory {
		h.lines = slices.Delete(h.lines, 0, 1)
	}
	h.lines = append(h.lines, fmt.Sprintf("%7.2fs %-10s %s: %s", time.Since(h.begun).Seconds(), kind, name, said))
}

// Note adds to the history what was done to a cluster.
func (w *World) Note(cluster, done string) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	w.history.add("Script", cluster, done)
}

// History is what was seen to happen to the world's pods and RayClusters, and the
// Events about them, oldest first.
func (w *World) History() string {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return strings.Join(w.history.lines, "\n")
}

func describePod(pod rig.Object) string {
	said := fmt.Sprintf("%v on %v", pod.Get("status.phase"), pod.Get("spec.nodeName"))
	if moment := pod.Get("metadata.deletionTimestamp"); moment != nil {
		said += ", is being deleted"
	}
	statuses, _ := pod.Get("status.containerStatuses").([]any)
	for _, status := range statuses {
		status := rig.Object(status.(map[string]any))
		said += fmt.Sprintf(", %v", status.Get("name"))
		for _, state := range []string{"waiting", "terminated"} {
			if status.Get("state."+state) != nil {
				said += fmt.Sprintf(" %s (%v, exit code %v)", state, status.Get("state."+state+".reason"), status.Get("state."+state+".exitCode"))
			}
		}
		said += fmt.Sprintf(" ready %v, CPU %v of %v", status.Get("ready"), status.Get("resources.limits.cpu"), limitOf(pod, status.Get("name")))
	}
	return said
}

// limitOf is the CPU limit in a pod's spec of the container of a name.
func limitOf(pod rig.Object, name any) any {
	containers, _ := pod.Get("spec.containers").([]any)
	for _, container := range containers {
		if container := rig.Object(container.(map[string]any)); container.Get("name") == name {
			return container.Get("resources.limits.cpu")
		}
	}
	return nil
}

func describeCluster(cluster rig.Object) string {
	said := fmt.Sprintf("scaled by %v, state %v", cluster.Get("metadata.annotations[rayfit.dev/reconcile]"), cluster.Get("status.state"))
	groups, _ := cluster.Get("spec.workerGroupSpecs").([]any)
	for _, group := range groups {
		group := rig.Object(group.(map[string]any))
		said += fmt.Sprintf("; group %v: replicas %v of %v to %v, to delete %v", group.Get("groupName"), group.Get("replicas"),
			group.Get("minReplicas"), group.Get("maxReplicas"), group.Get("scaleStrategy.workersToDelete"))
	}
	return said
}

// describeEvent leaves out what the pod's own states say.
func describeEvent(event rig.Object) string {
	switch event.Get("reason") {
	case "Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing":
		return ""
	}
	said := fmt.Sprintf("%v: %v", event.Get("reason"), event.Get("note"))
	if count := event.Get("series.count"); count != nil {
		said += fmt.Sprintf(" (%v times)", count)
	}
	return said
}
