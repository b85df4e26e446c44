package scaling_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestNodeLeaves drains the Kubernetes node of a worker, as `kubectl drain` does:
// it is cordoned, and the worker is evicted. A task that ends in the grace period
// is not begun again, and one that does not goes on at once in a pod that was
// asked for when the node was cordoned. RAYFIT_MODES=ray shows Ray's autoscaler.
// Where RAYFIT_LONG is set, a node is taken without any eviction too.
func TestNodeLeaves(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 2, Cores: 8, Memory: "16Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	mode := scaling.Central
	if os.Getenv("RAYFIT_MODES") == string(scaling.Ray) {
		mode = scaling.Ray
	}
	policy(t, w, "hold", `{match: {kinds: [RayCluster], names: [drained]}, reconcile: {holdBusyNodes: true}}`)
	c := &scaling.Cluster{Name: "drained", Mode: mode, Idle: 3600, Groups: []scaling.Group{
		{Name: "small", CPU: 2, Max: 3, Grace: 40, Drain: 30},
	}}
	d := drive(t, w, c)
	nap(t, w, d, *c, "short", 1, 20)
	nap(t, w, d, *c, "long", 1, 60)
	until(t, w, "both tasks have begun", func() error {
		return firstOf(attempted(w, *c, "short", 1), attempted(w, *c, "long", 1))
	})
	old := w.Workers(*c, "")[0]
	if mode != scaling.Ray {
		until(t, w, "the worker is marked for node autoscalers", func() error { return marked(w, old.Name(), true) })
	}

	node := fmt.Sprint(old.Get("spec.nodeName"))
	begun := time.Now()
	kubectl(t, w, "cordon", node)
	defer kubectl(t, w, "uncordon", node)
	if mode != scaling.Ray {
		until(t, w, "a pod in its place", func() error { return ever(w, *c, 2) })
		t.Logf("another pod was made %s after the node was cordoned", since(begun, w.EverWorkers(*c, "")[1].First))
		until(t, w, "an Event says that the node leaves", func() error { return w.Said(c.Name, "NodeLeaves", "is cordoned") })
		until(t, w, "the Ray node is drained", func() error { return w.Said(c.Name, "Draining", "is cordoned; it may be gone at") })
	}
	if mode != scaling.Ray {
		// From now on KubeRay does not make the pod again that leaves.
		until(t, w, "one replica is asked for", func() error {
			cluster, err := w.RayCluster(*c)
			if err != nil {
				return err
			}
			if n := fmt.Sprint(cluster.Get("spec.workerGroupSpecs[0].replicas")); n != "1" {
				return fmt.Errorf("replicas is %s", n)
			}
			return nil
		})
	}
	evicted := time.Now()
	kubectl(t, w, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--pod-selector=ray.io/node-type=worker", "--timeout=90s")
	t.Logf("the pod was gone %s after its eviction", time.Since(evicted).Round(100*time.Millisecond))
	if mode != scaling.Ray {
		until(t, w, "the Ray node is told when its pod is gone", func() error { return w.Said(c.Name, "Draining", "is cordoned; it is gone at") })
	}
	within(t, w, "both tasks end", func() error {
		return firstOf(attempted(w, *c, "short-ended", 1), attempted(w, *c, "long-ended", 1))
	})
	if err := attempted(w, *c, "short", 1); err != nil {
		t.Error(err)
	}
	if err := attempted(w, *c, "long", 2); err != nil {
		t.Error(err)
	}
	workers := w.EverWorkers(*c, "")
	t.Logf("mode %s: the pod in its place was made %s after the node was cordoned; all work had ended after %s",
		mode, since(begun, workers[1].First), time.Since(begun).Round(100*time.Millisecond))
	for _, task := range w.TaskGate.Tasks(batch(*c, "long")) {
		t.Logf("the long task began %s after the node was cordoned, on %s", since(begun, task.Began), task.Pod)
	}
	if mode != scaling.Ray {
		if n := len(workers); n != 2 {
			t.Errorf("%d workers were made instead of two", n)
		}
	}
	// With Ray's autoscaler nothing begins again until Kubernetes has given the pod of
	// the dead node up, after five minutes.
	if full() && mode != scaling.Ray {
		// With both nodes empty, its head and its worker are on one each.
		d.Close()
		if err := w.Delete(t.Context(), *c); err != nil {
			t.Fatal(err)
		}
		kubectl(t, w, "uncordon", node)
		t.Run("taken", func(t *testing.T) { nodeIsTaken(t, w, mode) })
	}
}

// closings are ways in which a Kubernetes node is closed to new pods for good. Who
// does it is played.
var closings = []struct {
	name, says  string
	close, open func(node string) []string
}{
	{
		"cordoned", "is cordoned",
		func(node string) []string { return []string{"cordon", node} },
		func(node string) []string { return []string{"uncordon", node} },
	},
	{
		"disrupted", "karpenter.sh/disrupted",
		func(node string) []string {
			return []string{"taint", "node", node, "karpenter.sh/disrupted:NoSchedule"}
		},
		func(node string) []string { return []string{"taint", "node", node, "karpenter.sh/disrupted-"} },
	},
}

// TestCordonedNode closes the node of a worker to new pods and evicts nothing: the
// worker takes no new work, and goes when its task has ended. Of the ways in which
// a node is closed, all are tried where RAYFIT_LONG is set.
func TestCordonedNode(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 2, Cores: 8, Memory: "16Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	for i, closing := range closings {
		if i > 0 && !full() {
			break
		}
		t.Run(closing.name, func(t *testing.T) {
			c := &scaling.Cluster{Name: closing.name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 2, Max: 3}}}
			d := drive(t, w, c)
			do(t, d, `hold("first", 1, num_cpus=1)`)
			until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "first"), 1) })
			old := w.Workers(*c, "")[0]
			node := fmt.Sprint(old.Get("spec.nodeName"))
			kubectl(t, w, closing.close(node)...)
			defer kubectl(t, w, closing.open(node)...)
			until(t, w, "an Event says why the node leaves", func() error { return w.Said(c.Name, "NodeLeaves", closing.says) })
			until(t, w, "the Ray node is drained", func() error { return w.Said(c.Name, "Draining", closing.says) })
			do(t, d, `hold("second", 1, num_cpus=1)`)
			until(t, w, "the new task works", func() error { return w.TaskGate.AtWork(batch(*c, "second"), 1) })
			task := w.TaskGate.Tasks(batch(*c, "second"))[0]
			if pod, err := w.Pod(task.Pod); err != nil || pod.Get("spec.nodeName") == node {
				t.Errorf("the new task works on %s, on the node that is about to leave (%v)", task.Pod, err)
			}
			w.TaskGate.Release(batch(*c, "first"))
			until(t, w, "the old worker goes", func() error { return w.HasWorkers(*c, "", 1) })
			if task := w.TaskGate.Tasks(batch(*c, "first"))[0]; task.Lost {
				t.Error("the task was lost")
			}
			w.TaskGate.Release(batch(*c, "second"))
		})
	}
	t.Run("drained", func(t *testing.T) { nodeIsDrained(t, w) })
}

// nodeIsDrained cordons the node of a worker and evicts the worker in one go, as people do: it comes
// first that the node is cordoned or that the pod is deleted. In either case the pod in its place is
// made while the old one ends, and no other one is. An actor on it works there afterwards, and what was
// stored beside it can be had.
func nodeIsDrained(t *testing.T, w *scaling.World) {
	c := &scaling.Cluster{Name: "evicted", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{
		{Name: "small", CPU: 2, Max: 3, Grace: 20, Drain: 15},
	}}
	d := drive(t, w, c)
	nap(t, w, d, *c, "long", 1, 30)
	until(t, w, "the task has begun", func() error { return attempted(w, *c, "long", 1) })
	made := eval(t, d, `value = keep("kept", num_cpus=0.5)`)
	if name := w.Workers(*c, "")[0].Name(); made != fmt.Sprintf("'%s'", name) {
		t.Fatalf("the actor is in pod %s, not in %s", made, name)
	}
	node := fmt.Sprint(w.Workers(*c, "")[0].Get("spec.nodeName"))
	defer kubectl(t, w, "uncordon", node)
	kubectl(t, w, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
		"--pod-selector=ray.io/cluster="+c.Name+",ray.io/node-type=worker", "--timeout=90s")
	within(t, w, "the task ends elsewhere", func() error { return attempted(w, *c, "long-ended", 1) })
	if err := ever(w, *c, 2); err != nil {
		t.Fatal(err)
	}
	workers := w.EverWorkers(*c, "")
	old, other := workers[0], workers[1]
	if !other.First.Before(old.Gone) {
		t.Errorf("the pod in its place was made %s after the old one had gone", since(old.Gone, other.First))
	}
	t.Logf("the pod in its place was made %s before the old one had gone", since(other.First, old.Gone))
	if kept := eval(t, d, `value = keeps("kept")`); kept != fmt.Sprintf("('%s', %d)", other.Name(), 4<<20) {
		t.Errorf("the actor and its object are %s, and not in pod %s", kept, other.Name())
	}
}

// eval runs code in a driver and returns what it calls `value`.
func eval(t *testing.T, d *scaling.Driver, code string) string {
	t.Helper()
	value, err := d.Eval(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// firstOf is the first error.
func firstOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// ever is nil if so many workers were made.
func ever(w *scaling.World, c scaling.Cluster, count int) error {
	if n := w.Made(c, ""); n != count {
		return fmt.Errorf("%d workers were made, not %d", n, count)
	}
	return nil
}

// marked is nil if a pod is marked for node autoscalers, or is not.
func marked(w *scaling.World, pod string, is bool) error {
	seen, err := w.Pod(pod)
	if err != nil {
		return err
	}
	marks := []string{
		fmt.Sprint(seen.Get("metadata.annotations[karpenter.sh/do-not-disrupt]")),
		fmt.Sprint(seen.Get("metadata.annotations[cluster-autoscaler.kubernetes.io/safe-to-evict]")),
	}
	if got := strings.Join(marks, " "); (got == "true false") != is {
		return fmt.Errorf("the marks of pod %s are %q", pod, got)
	}
	return nil
}
