package scaling

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// timedOut is what `ray start` says in a container in which Ray's processes were started
// and no Ray node came within 30 seconds. It ends with an error then, KubeRay makes
// another pod, and no autoscaler has a part in either.
const timedOut = "The current node timed out during startup"

// Ended are the records of containers in the world's namespace that ended by
// themselves, with an error: their last words, and Ray's. The lab's nodes write them.
func (w *World) Ended() []string { return w.ended("*") }

// NeverStarted are those worker pods that a cluster has ever had in which Ray did not
// start: another pod was made for each of them.
func (w *World) NeverStarted(c Cluster, group string) []Seen {
	return slices.DeleteFunc(w.EverWorkers(c, group), func(pod Seen) bool {
		return !slices.ContainsFunc(w.ended(pod.Name()), func(record string) bool {
			return strings.Contains(record, timedOut)
		})
	})
}

// Made is how many worker pods somebody has decided to make for a cluster: those that
// it has ever had, without the pods in whose place another one was made.
func (w *World) Made(c Cluster, group string) int {
	return len(w.EverWorkers(c, group)) - len(w.NeverStarted(c, group))
}

func (w *World) ended(pod string) []string {
	var records []string
	// The pattern is well-formed, which is all that could be wrong.
	paths, _ := filepath.Glob(filepath.Join(w.Lab.Dir(), "nodes", "*", "ended", w.Namespace+"_"+pod+"_*.log"))
	for _, path := range paths {
		record, err := os.ReadFile(path)
		if err != nil {
			record = fmt.Appendf(nil, "%v", err)
		}
		records = append(records, string(record))
	}
	return records
}
