package scaling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// obstacle is a reason why the pods of a group do not start. A group `<name>-a`
// has it, and a group `<name>-b` that fits the same tasks has not.
type obstacle struct {
	name string
	// why is what Rayfit says of it, and later what it says of a pod that it has
	// seen so a short while ago.
	why   []string
	group map[string]any
	// remove takes the obstacle away, as a person would.
	remove func(t *testing.T, w *scaling.World, c scaling.Cluster, group int)
}

const resources = "template.spec.containers[0].resources."

// obstacles are in the order of their groups. KubeRay makes no pod of a later group
// while one is refused, or has just ended: the others are then served only because
// Rayfit takes back what is refused.
var obstacles = []obstacle{
	{
		"image", []string{"cannot be pulled", "an image could not be pulled"},
		map[string]any{"template.spec.containers[0].image": "absent.example/ray:1"},
		func(t *testing.T, w *scaling.World, c scaling.Cluster, group int) {
			const image = `"value":"rayproject/ray:2.60.0"`
			repair(t, w, "raycluster", c.Name, fmt.Sprintf(`"replace","path":"/spec/workerGroupSpecs/%d/template/spec/containers/0/image",%s`, group, image))
			for _, pod := range w.Workers(c, "image-a") {
				repair(t, w, "pod", pod.Name(), `"replace","path":"/spec/containers/0/image",`+image)
			}
		},
	},
	{
		"node", []string{"no Kubernetes node takes", "no Kubernetes node took them"},
		map[string]any{resources + "requests[example.com/held]": "1", resources + "limits[example.com/held]": "1"},
		func(t *testing.T, w *scaling.World, _ scaling.Cluster, _ int) {
			kubectl(t, w, "delete", "pod", "holds", "--wait=false")
		},
	},
	{
		"crash", []string{"ended before Ray ran in it", "they ended before Ray ran in them"},
		map[string]any{"rayStartParams.no-such-option": "1"},
		func(t *testing.T, w *scaling.World, c scaling.Cluster, group int) {
			repair(t, w, "raycluster", c.Name, fmt.Sprintf(`"remove","path":"/spec/workerGroupSpecs/%d/rayStartParams/no-such-option"`, group))
		},
	},
	{
		"quota", []string{"KubeRay cannot make its pods", "KubeRay could not make them"},
		map[string]any{"template.spec.priorityClassName": "scarce"},
		func(t *testing.T, w *scaling.World, _ scaling.Cluster, _ int) {
			repair(t, w, "quota", "scarce", `"replace","path":"/spec/hard/pods","value":"1"`)
		},
	},
}

// TestGroupsThatCannotBeServed has tasks that each fit two groups, the first of
// which cannot be served: its image cannot be pulled, no Kubernetes node has what
// its pods need, its containers end as they start, or a ResourceQuota refuses its
// pods. The other group serves the task. The first one gets work again once what
// stood in its way is gone. The pod of one more group takes even longer, but a
// Kubernetes node is nominated for it, on which another pod is just ending: it is
// waited for.
func TestGroupsThatCannotBeServed(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	policy(t, w, "hindered", `{match: {kinds: [RayCluster]}, reconcile: {unschedulableSeconds: 4}}`)
	for _, resource := range []string{"held", "preempted"} {
		for _, field := range []string{"capacity", "allocatable"} {
			patch := fmt.Sprintf(`[{"op":"add","path":"/status/%s/example.com~1%s","value":"1"}]`, field, resource)
			kubectl(t, w, "patch", "node", "node-1", "--subresource=status", "--type=json", "--patch="+patch)
		}
	}
	if _, _, err := w.Lab.Apply(around); err != nil {
		t.Fatal(err)
	}
	c := &scaling.Cluster{Name: "hindered", Mode: scaling.Central, Idle: 3600}
	both := func(name string, group map[string]any) {
		custom := map[string]int{name: 1}
		c.Groups = append(c.Groups,
			scaling.Group{Name: name + "-a", CPU: 1, Max: 1, Custom: custom, More: group},
			scaling.Group{Name: name + "-b", CPU: 1, Max: 1, Custom: custom})
	}
	both("nominated", map[string]any{
		"template.spec.priorityClassName":             "urgent",
		resources + "requests[example.com/preempted]": "1", resources + "limits[example.com/preempted]": "1",
	})
	for _, o := range obstacles {
		both(o.name, o.group)
	}
	d := drive(t, w, c)
	hold := func(name, custom string) {
		do(t, d, fmt.Sprintf(`hold(%q, 1, num_cpus=1, resources={%q: 1})`, name, custom))
	}
	works := func(name, group string) scaling.Task {
		until(t, w, "task "+name+" works", func() error { return w.TaskGate.AtWork(batch(*c, name), 1) })
		task := w.TaskGate.Tasks(batch(*c, name))[0]
		if !strings.HasPrefix(task.Pod, c.Name+"-"+group+"-worker") {
			t.Errorf("task %s works on %s, not in group %s", name, task.Pod, group)
		}
		return task
	}
	begun := time.Now()
	hold("nominated", "nominated")
	for _, o := range obstacles {
		hold(o.name, o.name)
	}
	// What stands in the way is told while it does: of a pod that is withdrawn because nobody
	// needs it, or of a refusal that is a minute old, nothing is left to tell.
	explains(t, w, *c, map[string][]obstacle{
		"status": obstacles,
		// It has no memory: what no pod shows it does not know.
		"plan": obstacles[:2],
	})
	for _, o := range obstacles {
		task, pod := works(o.name, o.name+"-b"), w.EverWorkers(*c, o.name+"-b")[0]
		t.Logf("%s: the pod of the other group was made %s after the tasks, and the task began after %s", o.name, since(begun, pod.First), since(begun, task.Began))
		if err := w.Said(c.Name, "Problem", o.why[0]); err != nil {
			t.Error(err)
		}
	}
	if err := w.Said(c.Name, "FailedToCreateWorkerPod", "exceeded quota"); err != nil {
		t.Errorf("Rayfit points to an Event of KubeRay that is not there: %v", err)
	}
	task := works("nominated", "nominated-a")
	t.Logf("the task whose pod was nominated for a Kubernetes node began after %s", since(begun, task.Began))
	until(t, w, "no pod that ends is made again", func() error { return w.HasWorkers(*c, "crash-a", 0) })
	ended := w.Made(*c, "crash-a")
	t.Logf("%d pods ended before Ray ran in them", ended)

	// A pod that no task has needed for a minute is withdrawn, by now or at any time from now on, and made again when one
	// does.
	most := map[string]int{"nominated-a": 1, "nominated-b": 0, "image-b": 1, "node-b": 1, "crash-b": 1, "quota-b": 1}
	for _, o := range obstacles {
		group := o.name + "-a"
		most[group] = w.Made(*c, group) + 1
	}
	// There is no room in the other groups any more.
	for i, o := range obstacles {
		o.remove(t, w, *c, 2+2*i)
	}
	for _, o := range obstacles {
		hold(o.name+"-again", o.name)
	}
	for _, o := range obstacles {
		works(o.name+"-again", o.name+"-a")
	}
	for group, most := range most {
		if n := w.Made(*c, group); n > most || n < min(most, 1) {
			t.Errorf("%d pods of group %s were made instead of %d", n, group, most)
		}
	}
}

// explains waits until commands of Rayfit have said of the obstacles of each why the pods of their groups
// do not start. All are asked in turn: while one waits for a word about the last of them, the first ones may go.
func explains(t *testing.T, w *scaling.World, c scaling.Cluster, obstacles map[string][]obstacle) {
	t.Helper()
	left := map[string][]obstacle{}
	for command, of := range obstacles {
		left[command] = slices.Clone(of)
	}
	until(t, w, "Rayfit says why pods do not start", func() error {
		var missing error
		for command, of := range left {
			says, err := rig.Output(t.Context(), command, w.Namespace+"/"+c.Name, "--kubeconfig="+w.Lab.Kubeconfig())
			if err != nil {
				return err
			}
			of = slices.DeleteFunc(of, func(o obstacle) bool {
				return strings.Contains(says, o.why[0]) || strings.Contains(says, o.why[1])
			})
			left[command] = of
			if len(of) > 0 {
				missing = fmt.Errorf("rayfit %s says neither %q nor %q: %s", command, of[0].why[0], of[0].why[1], says)
			}
		}
		return missing
	})
}

// repair applies an operation of a JSON patch to an object.
func repair(t *testing.T, w *scaling.World, kind, name, operation string) {
	t.Helper()
	kubectl(t, w, "patch", kind, name, "--type=json", `--patch=[{"op":`+operation+`}]`)
}

// around is what there is beside the cluster: a PriorityClass of which a
// ResourceQuota allows no pod; a pod that holds what the Kubernetes node has one
// of; and another one, which makes room for more urgent pods and takes its time.
const around = `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: scarce}
value: 0
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: scarce, namespace: default}
spec:
  hard: {pods: "0"}
  scopeSelector:
    matchExpressions: [{scopeName: PriorityClass, operator: In, values: [scarce]}]
---
apiVersion: v1
kind: Pod
metadata: {name: holds, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: rayproject/ray:2.60.0
    command: [/bin/sh, -c, "sleep 3600"]
    resources: {limits: {example.com/held: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: gives-way, namespace: default}
spec:
  terminationGracePeriodSeconds: 20
  containers:
  - name: main
    image: rayproject/ray:2.60.0
    command: [/bin/sh, -c, "trap '' TERM; while :; do sleep 1; done"]
    resources: {limits: {example.com/preempted: "1"}}
`
