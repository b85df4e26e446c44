package scaling

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"rayfit.dev/rayfit/tests/rig"
)

// named are the pods that RayClusters have ever named for deletion, by the
// cluster's name. What is named is gone from the object when the pod is, so that
// its last state does not tell.
type named struct {
	mu sync.Mutex
	by map[string]map[string]bool
}

func (n *named) note(cluster rig.Object) {
	groups, _ := cluster.Get("spec.workerGroupSpecs").([]any)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range groups {
		pods, _ := cluster.Get(fmt.Sprintf("spec.workerGroupSpecs[%d].scaleStrategy.workersToDelete", i)).([]any)
		for _, pod := range pods {
			if n.by == nil {
				n.by = map[string]map[string]bool{}
			}
			if n.by[cluster.Name()] == nil {
				n.by[cluster.Name()] = map[string]bool{}
			}
			n.by[cluster.Name()][fmt.Sprint(pod)] = true
		}
	}
}

// Named are all the pods that a cluster's object has ever named for deletion.
func (w *World) Named(c Cluster) []string {
	w.named.mu.Lock()
	defer w.named.mu.Unlock()
	return slices.Sorted(maps.Keys(w.named.by[c.Name]))
}

// Owned are all the pods that a cluster has ever controlled as their owner,
// whatever their labels say.
func (w *World) Owned(c Cluster) ([]Seen, error) {
	cluster, err := w.RayCluster(c)
	if err != nil {
		return nil, err
	}
	uid := cluster.Get("metadata.uid")
	return w.pods.all(func(p *Seen) bool {
		owners, _ := p.Get("metadata.ownerReferences").([]any)
		return slices.ContainsFunc(owners, func(owner any) bool {
			fields, _ := owner.(map[string]any)
			return fields["uid"] == uid && fields["controller"] == true
		})
	}), nil
}
