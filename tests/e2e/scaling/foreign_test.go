package scaling_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// foreignPods are pods that carry the labels of tenants' pods and are nobody's: no
// RayCluster controls them. They share the nodes of the tenants' heads.
type foreignPods struct {
	// ray is the one played Ray behind all heads among them.
	ray     *playgcs.Cluster
	pods    []stranger
	tenants []*tenant
}

// stranger is one of them, as it was when it had begun.
type stranger struct {
	in *stage
	scaling.Seen
}

// postgres is a pod with a worker's label; somebody works in it.
const postgres = "postgres-0"

// addForeignPods puts pods of nobody beside tenants whose clusters have one name.
//
// The operator itself goes by labels within a cluster's namespace: beside a second
// head it does nothing for the cluster any more, and a pod with a group's label it
// counts as one of its workers. So heads are in a namespace of their own, which
// sorts before the tenants', and workers beside a cluster name no group.
func addForeignPods(t *testing.T, s *stage, tenants []*tenant) *foreignPods {
	t.Helper()
	own := s.in(t, "stranger")
	c := tenants[0].c
	st := &foreignPods{ray: own.played(c), tenants: tenants}
	nodes := nodesOf(t, tenants)
	for i, node := range nodes {
		st.add(t, own, head(fmt.Sprintf("hijacker-%d", i), node, c))
		other := map[string]any{"name": "autoscaler", "image": "example/janitor"}
		st.add(t, own, head(fmt.Sprintf("janitor-%d", i), node, c).Set("spec.containers[1]", other))
	}
	st.add(t, own, labelled(postgres, nodes[0], c, "worker").Set("metadata.labels[ray.io/group]", "kept"))
	for _, tn := range tenants {
		st.add(t, tn.stage, labelled(postgres, nodes[0], c, "worker"))
	}
	until(t, own.World, "the heads of foreign clusters can be asked", func() error { return joined(st.ray, 2*len(nodes)) })
	// Who asks them hears of work for a thousand machines, and of an idle worker.
	st.ray.Join(postgres, "kept", "127.0.0.1", false, map[string]float64{"memory": 1 << 30})
	st.ray.Ask(1000, small)
	st.ray.Ask(1000, large)
	return st
}

// nodesOf are the nodes of the tenants' heads.
func nodesOf(t *testing.T, tenants []*tenant) []string {
	t.Helper()
	var nodes []string
	for _, tn := range tenants {
		found, err := tn.Head(tn.c)
		if err != nil {
			t.Fatal(err)
		}
		if node, _ := found.Get("spec.nodeName").(string); !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// labelled is a pod on a node that says to be of a cluster.
func labelled(name, node string, c scaling.Cluster, kind string) rig.Object {
	one := map[string]any{"cpu": "1", "memory": "1Gi"}
	container := map[string]any{
		"name": "ray-" + kind, "image": "example/stranger",
		"resources": map[string]any{"requests": one, "limits": one},
		// The played Ray of a head answers here.
		"env": []any{map[string]any{"name": "RAY_PORT", "value": strconv.Itoa(c.Port)}},
	}
	return rig.Object{}.Set("apiVersion", "v1").Set("kind", "Pod").
		Set("metadata.name", name).
		Set("metadata.labels", map[string]any{"ray.io/cluster": c.Name, "ray.io/node-type": kind}).
		Set("spec.nodeName", node).Set("spec.terminationGracePeriodSeconds", 0).
		Set("spec.containers", []any{container})
}

// head is such a pod that looks like a head in everything, and has a played Ray.
func head(name, node string, c scaling.Cluster) rig.Object {
	return labelled(name, node, c, "head").
		Set("metadata.labels[ray.io/group]", "headgroup").
		Set("metadata.labels[ray.io/is-ray-node]", "yes")
}

// add creates a pod that ends with its test, and waits until it runs.
func (st *foreignPods) add(t *testing.T, in *stage, pod rig.Object) {
	t.Helper()
	path := "/api/v1/namespaces/" + in.Namespace + "/pods"
	if _, err := in.Lab.Request(t.Context(), http.MethodPost, path, pod.JSON()); err != nil {
		t.Fatalf("create pod %s: %v", pod.Name(), err)
	}
	t.Cleanup(func() {
		kubectl(t, in.World, "delete", "pod", pod.Name(), "--ignore-not-found", "--force", "--grace-period=0")
	})
	until(t, in.World, "pod "+pod.Name()+" runs", func() error {
		seen, err := in.Pod(pod.Name())
		if err != nil {
			return err
		}
		if seen.Ready.IsZero() {
			return fmt.Errorf("it is %v and not ready", seen.Get("status.phase"))
		}
		return nil
	})
	seen, err := in.Pod(pod.Name())
	if err != nil {
		t.Fatal(err)
	}
	st.pods = append(st.pods, stranger{in, seen})
}

// review looks back: nobody has asked them, deleted, changed or named them.
func (st *foreignPods) review(t *testing.T) {
	t.Helper()
	if n, calls := st.ray.Connections(), st.ray.Calls(); n > 0 || len(calls) > 0 {
		t.Errorf("the GCS of foreign pods was connected to %d times, and asked %v", n, calls)
	}
	for _, before := range st.pods {
		name := before.in.Namespace + "/" + before.Name()
		now, err := before.in.Pod(before.Name())
		if err != nil {
			t.Error(err)
			continue
		}
		if !now.Gone.IsZero() || now.Get("metadata.deletionTimestamp") != nil || now.Get("metadata.uid") != before.Get("metadata.uid") {
			t.Errorf("pod %s was deleted", name)
		}
		for _, path := range []string{"spec", "metadata.annotations", "metadata.labels"} {
			if was, is := before.Get(path), now.Get(path); !reflect.DeepEqual(was, is) {
				t.Errorf("%s of pod %s has changed", path, name)
			}
		}
	}
	for _, tn := range st.tenants {
		for _, line := range tn.Events(tn.c.Name) {
			for _, pod := range st.pods {
				if strings.Contains(line, pod.Name()) {
					t.Errorf("%s: an Event of the cluster names a stranger: %s", tn.Namespace, line)
				}
			}
		}
	}
}
