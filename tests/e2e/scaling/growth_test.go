package scaling_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// growing groups; a task that names a group's resource can run on it only.
func growing() []scaling.Group {
	only := func(name string) map[string]int { return map[string]int{name: 10} }
	return []scaling.Group{
		{Name: "one", CPU: 1, Max: 1, MaxCPU: 3, Custom: only("one")},
		{Name: "more", CPU: 1, Max: 2, MaxCPU: 2, Custom: only("more")},
		{Name: "stuck", CPU: 1, Max: 2, MaxCPU: 3, ResizeTimeout: 4, Custom: only("stuck")},
	}
}

// TestGrowth runs the same scenarios of growing in place for each mode.
func TestGrowth(t *testing.T) {
	w := startWorld(t, growthLab)
	inEachMode(t, w, both, func(t *testing.T, mode scaling.Mode) {
		scene := newGrowth(t, w, mode)
		t.Run("a running pod grows", scene.runningPodGrows)
		t.Run("a pod that is still to come will grow", scene.comingPodGrows)
		if mode != scaling.Ray { // which leaves pods at the size to which they have grown
			t.Run("gives up what it does not use, and takes it back", scene.shrinks)
		}
	})
}

// TestGrowthBesideOthers lets pods grow where others resize them, take their room, or
// hang: one mode after the other, since these have nodes to themselves.
func TestGrowthBesideOthers(t *testing.T) {
	w := startWorld(t, growthLab)
	for _, mode := range modes(t, w, both) {
		t.Run(string(mode), func(t *testing.T) {
			scene := newGrowth(t, w, mode)
			t.Run("grows and scales out", scene.growsAndScalesOut)
			t.Run("resized by somebody else", scene.resizedBySomebodyElse)
			if mode == scaling.Ray {
				return // which bars the pod for life, and counts it at its resize limit
			}
			t.Run("Ray ends in a grown pod", scene.rayEnds)
			t.Run("waits for room on the node", scene.waitsForRoom)
			t.Run("a resize that does not end", scene.timesOut)
		})
	}
}

var growthLab = lab.Options{Nodes: 2, Cores: 16, Memory: "64Gi", Ray: true}

func newGrowth(t *testing.T, w *scaling.World, mode scaling.Mode) growth {
	t.Helper()
	c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 60, Groups: growing()}
	d := drive(t, w, c)
	return growth{w, *c, d}
}

type growth struct {
	w *scaling.World
	c scaling.Cluster
	d *scaling.Driver
}

// hold starts one-CPU tasks that can only run on a group.
func (g growth) hold(t *testing.T, group, name string, count int) {
	t.Helper()
	do(t, g.d, fmt.Sprintf(`hold(%q, %d, num_cpus=1, resources={%q: 1})`, name, count, group))
}

func (g growth) atWork(t *testing.T, name string, count int) {
	t.Helper()
	until(t, g.w, fmt.Sprintf("%d tasks of %s at work", count, name), func() error { return g.w.TaskGate.AtWork(batch(g.c, name), count) })
}

// none lets go and waits until no worker is left.
func (g growth) none(t *testing.T, names ...string) {
	t.Helper()
	none(t, g.w, g.c, g.d, names...)
}

// size is the CPU that a pod is to have and the CPU that it has.
func size(pod scaling.Seen) (wanted, actual string) {
	return fmt.Sprint(pod.Get("spec.containers[0].resources.limits.cpu")),
		fmt.Sprint(pod.Get("status.containerStatuses[0].resources.limits.cpu"))
}

func (g growth) onlyPod(t *testing.T, group string) scaling.Seen {
	t.Helper()
	pods := g.w.Workers(g.c, group)
	if len(pods) != 1 {
		t.Fatalf("%d workers of group %s instead of one", len(pods), group)
	}
	return pods[0]
}

func (g growth) grown(t *testing.T, pod, cpu string) {
	t.Helper()
	until(t, g.w, "pod "+pod+" has "+cpu+" CPUs", func() error {
		seen, err := g.w.Pod(pod)
		if err != nil {
			return err
		}
		if wanted, actual := size(seen); wanted != cpu || actual != cpu {
			return fmt.Errorf("it is to have %s and has %s", wanted, actual)
		}
		return nil
	})
}

// A pod at its base size, tasks for three times as much: it grows, Ray learns
// it, all three run there, and no other pod was made.
func (g growth) runningPodGrows(t *testing.T) {
	before := g.w.Made(g.c, "")
	edit(t, g.w, g.c, "one", "minReplicas", 1)
	g.hold(t, "one", "first", 1)
	g.atWork(t, "first", 1)
	pod := g.onlyPod(t, "one")
	begin := time.Now()
	g.hold(t, "one", "burst", 2)
	g.atWork(t, "burst", 2)
	for _, task := range g.w.TaskGate.Tasks(batch(g.c, "burst")) {
		t.Logf("%s began after %s", task.Name, task.Began.Sub(begin).Round(time.Millisecond))
		if task.Pod != pod.Name() {
			t.Errorf("%s runs on %s and not on %s, which was to grow", task.Name, task.Pod, pod.Name())
		}
	}
	g.grown(t, pod.Name(), "3")
	if made := g.w.Made(g.c, "") - before; made != 1 {
		t.Errorf("%d pods were made for what one can grow to", made)
	}
	edit(t, g.w, g.c, "one", "minReplicas", 0)
	g.none(t, "first", "burst")
}

// No pod yet, tasks for what one can grow to: one pod is made, not three.
func (g growth) comingPodGrows(t *testing.T) {
	before := g.w.Made(g.c, "")
	g.hold(t, "more", "coming", 2)
	g.atWork(t, "coming", 2)
	if made := g.w.Made(g.c, "") - before; made != 1 && g.c.Mode != scaling.Ray {
		t.Errorf("%d pods were made for what one can grow to", made)
	}
	g.none(t, "coming")
}

// Two of three tasks end: the pod comes down to what the third one uses, which
// goes on. Two more tasks come: the same pod grows again, and runs them.
func (g growth) shrinks(t *testing.T) {
	g.hold(t, "one", "stays", 1)
	g.atWork(t, "stays", 1)
	g.hold(t, "one", "ends", 2)
	g.atWork(t, "ends", 2)
	pod := g.onlyPod(t, "one").Name()
	g.grown(t, pod, "3")
	made := g.w.Made(g.c, "")
	g.w.TaskGate.Release(batch(g.c, "ends"))
	do(t, g.d, `drop("ends")`)
	g.grown(t, pod, "1")
	begin := time.Now()
	g.hold(t, "one", "again", 2)
	g.atWork(t, "again", 2)
	for _, task := range g.w.TaskGate.Tasks(batch(g.c, "again")) {
		t.Logf("%s began after %s", task.Name, task.Began.Sub(begin).Round(time.Millisecond))
	}
	g.grown(t, pod, "3")
	if more := g.w.Made(g.c, "") - made; more != 0 {
		t.Errorf("%d pods were made for what one can grow to", more)
	}
	if err := g.w.TaskGate.AtWork(batch(g.c, "stays"), 1); err != nil {
		t.Errorf("the task that ran while its pod shrank: %v", err)
	}
	g.none(t, "stays", "again")
}

// What a pod cannot grow to is put beside it.
func (g growth) growsAndScalesOut(t *testing.T) {
	g.hold(t, "more", "seed", 1)
	g.atWork(t, "seed", 1)
	first := g.onlyPod(t, "more").Name()
	g.hold(t, "more", "rest", 3)
	g.atWork(t, "rest", 3)
	until(t, g.w, "two workers", func() error { return g.w.HasWorkers(g.c, "more", 2) })
	g.grown(t, first, "2")
	g.none(t, "seed", "rest")
}

// A size that somebody else gave to the pod reaches Ray.
func (g growth) resizedBySomebodyElse(t *testing.T) {
	if g.c.Mode == scaling.Ray {
		t.Log("Ray's autoscaler never looks at a resize that it has not asked for")
		return
	}
	g.hold(t, "one", "other", 1)
	g.atWork(t, "other", 1)
	pod := g.onlyPod(t, "one").Name()
	patch := `{"spec":{"containers":[{"name":"ray-worker","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}}`
	if _, _, err := g.w.Lab.Kubectl("patch", "pod", pod, "-n", scaling.Namespace, "--subresource", "resize", "--patch", patch); err != nil {
		t.Fatal(err)
	}
	g.grown(t, pod, "2")
	// Ray's own word for it: its GCS, as a driver sees it.
	labtest.Eventually(t, scaling.Patience, "Ray knows two CPUs", func() error {
		value, err := g.d.Eval(t.Context(), `value = ray.cluster_resources().get("CPU", 0)`)
		if err == nil && value != "2.0" {
			err = fmt.Errorf("Ray knows %s CPUs", value)
		}
		return err
	})
	g.none(t, "other")
}

// The end of Ray in a grown pod ends the pod. The next one starts small again,
// and grows again.
func (g growth) rayEnds(t *testing.T) {
	g.hold(t, "one", "before", 3)
	g.atWork(t, "before", 3)
	pod := g.onlyPod(t, "one").Name()
	g.grown(t, pod, "3")
	if _, _, err := g.w.Lab.Kubectl("exec", "-n", scaling.Namespace, pod, "-c", "ray-worker", "--", "pkill", "-KILL", "raylet"); err != nil {
		t.Fatal(err)
	}
	do(t, g.d, `drop("before")`)
	g.hold(t, "one", "after", 3)
	g.atWork(t, "after", 3)
	if next := g.onlyPod(t, "one").Name(); next == pod {
		t.Errorf("pod %s is still there, although Ray in it has ended", pod)
	}
	g.none(t, "after")
}

// While others fill the node there is no room: the kubelet defers the resize, and
// it is taken back. When they have gone, the pod grows.
func (g growth) waitsForRoom(t *testing.T) {
	g.hold(t, "one", "early", 1)
	g.atWork(t, "early", 1)
	pod := g.onlyPod(t, "one")
	node, _ := pod.Get("spec.nodeName").(string)
	fill(t, g.w, node)
	g.hold(t, "one", "late", 2)
	until(t, g.w, "the node has no room", func() error { return noted(g.w, pod.Name(), `"suggested-max-cpu":1`) })
	until(t, g.w, "the resize was taken back", func() error { return atBase(g.w, pod.Name()) })
	if g.c.Mode == scaling.Central {
		until(t, g.w, "that is said", func() error { return g.w.Said(g.c.Name, "ResizeDeferred", pod.Name()) })
	}
	if err := g.w.TaskGate.AtWork(batch(g.c, "late"), 0); err != nil {
		t.Errorf("although the node is full: %v", err)
	}
	empty(t, g.w)
	g.atWork(t, "late", 2)
	g.grown(t, pod.Name(), "3")
	g.none(t, "early", "late")
}

// noted is nil while the record of a pod's resizes has a text.
func noted(w *scaling.World, name, text string) error {
	pod, err := w.Pod(name)
	if err != nil {
		return err
	}
	note, _ := pod.Get("metadata.annotations[ray.io/ippr-status]").(string)
	if !strings.Contains(note, text) {
		return fmt.Errorf("pod %s has the record %q", name, note)
	}
	return nil
}

// A kubelet that hangs: the resize is taken back in its time, and the rest of
// the tasks get a pod elsewhere.
func (g growth) timesOut(t *testing.T) {
	// Not on the head's node, through whose kubelet we talk to the driver.
	head, err := g.w.Head(g.c)
	if err != nil {
		t.Fatal(err)
	}
	home, _ := head.Get("spec.nodeName").(string)
	cordon(t, g.w, home, true)
	g.hold(t, "stuck", "hung", 1)
	g.atWork(t, "hung", 1)
	cordon(t, g.w, home, false)
	pod := g.onlyPod(t, "stuck")
	node, _ := pod.Get("spec.nodeName").(string)
	cordon(t, g.w, node, true)
	kubelet := g.w.Lab.PID(node)
	if err := syscall.Kill(kubelet, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := func() { _ = syscall.Kill(kubelet, syscall.SIGCONT) }
	defer resume()
	g.hold(t, "stuck", "moved", 1)
	until(t, g.w, "a second worker", func() error { return g.w.HasWorkers(g.c, "stuck", 2) })
	g.atWork(t, "moved", 1)
	until(t, g.w, "the resize was taken back", func() error { return atBase(g.w, pod.Name()) })
	resume()
	cordon(t, g.w, node, false)
	g.none(t, "hung", "moved")
}

// atBase is nil if a pod is to have the one CPU that it began with.
func atBase(w *scaling.World, pod string) error {
	seen, err := w.Pod(pod)
	if wanted, _ := size(seen); err == nil && wanted != "1" {
		err = fmt.Errorf("it is to have %s", wanted)
	}
	return err
}

const ballast = "ballast"

// fill leaves a node no CPU.
func fill(t *testing.T, w *scaling.World, node string) {
	t.Helper()
	raw, _, err := w.Lab.Kubectl("get", "node", node, "-o", "jsonpath={.status.allocatable.cpu}")
	if err != nil {
		t.Fatal(err)
	}
	total, err := strconv.Atoi(raw)
	if err != nil {
		t.Fatal(err)
	}
	used, _, err := w.Lab.Kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName="+node, "-o",
		"jsonpath={range .items[*].spec.containers[*]}{.resources.requests.cpu}{\"\\n\"}{end}")
	if err != nil {
		t.Fatal(err)
	}
	rest := total*1000 - millicores(t, used)
	pod := rig.Object{}.Set("apiVersion", "v1").Set("kind", "Pod").
		Set("metadata.name", ballast).Set("metadata.namespace", scaling.Namespace).
		Set("spec.nodeName", node).Set("spec.terminationGracePeriodSeconds", 0).
		Set("spec.containers", []any{map[string]any{
			"name": ballast, "image": "example/ballast",
			"resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", rest)}},
		}})
	if _, _, err := w.Lab.Apply(pod.YAML()); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the ballast runs", func() error {
		seen, err := w.Pod(ballast)
		if err == nil && seen.Get("status.phase") != "Running" {
			err = fmt.Errorf("it is %v: %v", seen.Get("status.phase"), seen.Get("status.message"))
		}
		return err
	})
}

func empty(t *testing.T, w *scaling.World) {
	t.Helper()
	if _, _, err := w.Lab.Kubectl("delete", "pod", ballast, "-n", scaling.Namespace, "--force", "--grace-period=0"); err != nil {
		t.Fatal(err)
	}
}

func cordon(t *testing.T, w *scaling.World, node string, on bool) {
	t.Helper()
	if _, _, err := w.Lab.Kubectl("patch", "node", node, "--patch", fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on)); err != nil {
		t.Fatal(err)
	}
}

// millicores adds up quantities of CPU, one a line.
func millicores(t *testing.T, lines string) int {
	t.Helper()
	sum := 0
	for _, quantity := range strings.Fields(lines) {
		digits, milli := strings.CutSuffix(quantity, "m")
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatalf("CPU quantity %q: %v", quantity, err)
		}
		if !milli {
			n *= 1000
		}
		sum += n
	}
	return sum
}
