package scaling_test

import (
	"fmt"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestPodsAreMadeLarge has a single task ask for three times what a pod starts
// with, where the webhook for new pods is installed: KubeRay's pod has that size
// from its first moment, no resize is asked for, Ray learns it, and it comes down
// once the task is over. Without the webhook the pod is made as its template says,
// and grows to the same.
func TestPodsAreMadeLarge(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	server, err := rig.Serve(t.Context(), w.Lab, "--no-controller", "--kubeconfig="+w.Lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	webhooks := &rig.Rig{Lab: w.Lab, Server: server, Flags: []string{"--initial-sizes"}}
	if err := webhooks.Install(t.Context(), rig.FailOpen); err != nil {
		t.Fatal(err)
	}
	var scenes []madeLarge
	for _, mode := range modes(t, w, scaling.Central) {
		if mode == scaling.Ray {
			continue // which knows nothing of it
		}
		c := scaling.Cluster{Name: "large-" + string(mode), Mode: mode, Idle: 10, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 2, MaxCPU: 4}}}
		policy(t, w, c.Name, `{match: {kinds: [RayCluster], names: ["`+c.Name+`"]}, reconcile: {inPlace: {initialSizes: true, keepSmallSeconds: 0}}}`)
		d := drive(t, w, &c)
		scenes = append(scenes, madeLarge{growth{w, c, d}})
	}
	for _, scene := range scenes {
		t.Run("with the webhook, "+string(scene.c.Mode), scene.fromTheFirst)
	}
	if err := webhooks.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, scene := range scenes {
		t.Run("without it, "+string(scene.c.Mode), scene.asBefore)
	}
}

type madeLarge struct{ growth }

// pod is the worker, once the task is at work in it.
func (m madeLarge) pod(t *testing.T, task string) scaling.Seen {
	t.Helper()
	do(t, m.d, fmt.Sprintf(`hold(%q, 1, num_cpus=3)`, task))
	m.atWork(t, task, 1)
	return m.onlyPod(t, "cpu")
}

// generation is that of the pod's spec: 1 as long as nobody has changed it.
func generation(pod scaling.Seen) string { return fmt.Sprint(pod.Get("metadata.generation")) }

func (m madeLarge) fromTheFirst(t *testing.T) {
	pod := m.pod(t, "large")
	wanted, _ := size(pod)
	if wanted != "3" || generation(pod) != "1" {
		t.Errorf("pod %s has %s CPUs at generation %s, and was to be made with 3", pod.Name(), wanted, generation(pod))
	}
	if requested := fmt.Sprint(pod.Get("spec.containers[0].resources.requests.cpu")); requested != "3" {
		t.Errorf("pod %s requests %s CPUs", pod.Name(), requested)
	}
	if m.c.Mode == scaling.Central {
		until(t, m.w, "it is said how large the pod is made", func() error {
			return m.w.Said(m.c.Name, "ScaledUp", "1 new nodes are needed, to be made with 3 CPU")
		})
	}
	// Its raylet was started with the template's one CPU, and was told since.
	if task := m.w.TaskGate.Tasks(batch(m.c, "large"))[0]; task.Pod != pod.Name() {
		t.Errorf("the task runs on %s, and not on %s", task.Pod, pod.Name())
	}
	m.none(t, "large")
}

func (m madeLarge) asBefore(t *testing.T) {
	pod := m.pod(t, "grown")
	// It grows as far as it may. (By the time that its task is at work it may have come down to what that uses.)
	until(t, m.w, "the kubelet says that the pod has grown", func() error {
		return m.w.Said(pod.Name(), "ResizeCompleted", `"limits":{"cpu":"4"`)
	})
	now, err := m.w.Pod(pod.Name())
	if err != nil {
		t.Fatal(err)
	}
	if generation(now) == "1" {
		t.Errorf("pod %s was made large, although no webhook was there", pod.Name())
	}
	m.none(t, "grown")
}
