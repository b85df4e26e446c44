package scaling_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestClustersThatComeAgain has what KubeRay makes anew under a name, or under a
// GCS that remembers: scaling goes on, also in mode sidecar where RAYFIT_LONG is set.
func TestClustersThatComeAgain(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true, Redis: true})
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	redis := redisAt(t, w)
	t.Run("of", func(t *testing.T) {
		t.Run("a RayJob that is suspended", func(t *testing.T) { t.Parallel(); suspendedJob(t, w) })
		for _, mode := range []scaling.Mode{scaling.Central, scaling.Sidecar} {
			if mode != scaling.Central && !full() {
				continue
			}
			t.Run("a head whose GCS is fault-tolerant in mode "+string(mode), func(t *testing.T) { t.Parallel(); lostHead(t, w, mode, redis) })
		}
	})
}

// suspendedJob suspends a RayJob with two busy workers and lets it go on. Its
// RayCluster is then another one, whose workers are those that its own work needs.
// (Nothing is submitted to it: the head has no dashboard, and the operator, which
// asks in vain, counts the job as running.)
func suspendedJob(t *testing.T, w *scaling.World) {
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	made := scaling.Cluster{Name: "resumed", Mode: scaling.Central, Port: port, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 3}}}
	object := made.Object()
	job := rig.RayJob(w.Namespace, made.Name).Set("spec.submissionMode", "HTTPMode").Set("spec.rayClusterSpec", object.Get("spec")).
		Set("spec.shutdownAfterJobFinishes", true). // The operator suspends no other.
		Set("metadata.annotations", object.Get("metadata.annotations"))
	if _, err := w.Lab.Request(t.Context(), http.MethodPost, "/apis/ray.io/v1/namespaces/"+w.Namespace+"/rayjobs", job.JSON()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kubectl(t, w, "delete", "rayjob", made.Name, "--wait=false") })
	first := clusterOf(t, w, made, "")
	d := scalingtest.Connect(t, first, w.Drive)
	do(t, d, `hold("work", 2, num_cpus=1)`)
	until(t, w, "both tasks work", func() error { return w.TaskGate.AtWork(batch(first, "work"), 2) })
	until(t, w, "the operator counts it as running", func() error { return rayJobIs(t, w, made.Name, "Running") })
	d.Close()

	kubectl(t, w, "patch", "rayjob", made.Name, "--type=merge", `--patch={"spec":{"suspend":true}}`)
	until(t, w, "the cluster and its pods are gone", func() error {
		if _, err := w.RayCluster(first); err == nil {
			return errors.New("the RayCluster is there")
		}
		for _, pod := range w.EverWorkers(first, "") {
			if pod.Gone.IsZero() {
				return fmt.Errorf("pod %s is there", pod.Name())
			}
		}
		return nil
	})
	if n := w.Made(first, ""); n != 2 {
		t.Errorf("the cluster has had %d workers instead of two", n)
	}

	kubectl(t, w, "patch", "rayjob", made.Name, "--type=merge", `--patch={"spec":{"suspend":false}}`)
	second := clusterOf(t, w, made, first.Name)
	again := scalingtest.Connect(t, second, w.Drive)
	until(t, w, "the new cluster is scaled", func() error { return scaledBy(w, second, scaling.Central) })
	if n := w.Made(second, ""); n != 0 {
		t.Errorf("%d workers were made before there was work", n)
	}
	do(t, again, `hold("more", 1, num_cpus=1)`)
	until(t, w, "a task works again", func() error { return w.TaskGate.AtWork(batch(second, "more"), 1) })
	if n := w.Made(second, ""); n != 1 {
		t.Errorf("%d workers were made for one task", n)
	}
	none(t, w, second, again, "more")
}

// clusterOf is the RayCluster of a RayJob, once its head is ready; not the one
// before.
func clusterOf(t *testing.T, w *scaling.World, job scaling.Cluster, before string) scaling.Cluster {
	t.Helper()
	found := job
	until(t, w, "the RayJob has a cluster", func() error {
		found.Name = kubectl(t, w, "get", "rayjob", job.Name, "-o", "jsonpath={.status.rayClusterName}")
		if found.Name == "" || found.Name == before {
			return fmt.Errorf("its cluster is %q", found.Name)
		}
		_, err := w.Head(found)
		return err
	})
	return found
}

func rayJobIs(t *testing.T, w *scaling.World, name, want string) error {
	t.Helper()
	if is := kubectl(t, w, "get", "rayjob", name, "-o", "jsonpath={.status.jobDeploymentStatus}"); is != want {
		return fmt.Errorf("RayJob %s is %s", name, is)
	}
	return nil
}

// lostHead kills the GCS of a cluster whose GCS stores what it knows in Redis, and
// with it the head pod, while two actors work and one worker is idle. KubeRay makes
// another head, which finds all of them again.
func lostHead(t *testing.T, w *scaling.World, mode scaling.Mode, redis string) {
	c := &scaling.Cluster{
		Name: "tolerant-" + string(mode), Mode: mode, Idle: 3600, Patience: 300, Redis: redis,
		Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 4}},
	}
	d := drive(t, w, c)
	do(t, d, `hold_actors("actor", 2, num_cpus=1, lifetime="detached")`)
	do(t, d, `hold("task", 1, num_cpus=1)`)
	until(t, w, "the actors work", func() error { return w.TaskGate.AtWork(batch(*c, "actor"), 2) })
	until(t, w, "the task works", func() error { return w.TaskGate.AtWork(batch(*c, "task"), 1) })
	w.TaskGate.Release(batch(*c, "task"))
	workers := names(w.Workers(*c, ""))
	old, err := w.Head(*c)
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if _, _, err := w.Lab.Kubectl("exec", "-n", w.Namespace, old.Name(), "-c", "ray-head", "--", "pkill", "-KILL", "gcs_server"); err != nil {
		t.Fatal(err)
	}
	until(t, w, "there is another head", func() error {
		head, err := w.Head(*c)
		if err != nil {
			return err
		}
		if head.Name() == old.Name() {
			return errors.New("it is the old one")
		}
		return nil
	})
	t.Logf("mode %s: another head was made %s after the GCS was killed", mode, time.Since(killed).Round(100*time.Millisecond))
	again := scalingtest.Connect(t, *c, w.Drive)
	do(t, again, `hold("more", 2, num_cpus=1)`)
	until(t, w, "two more tasks work", func() error { return w.TaskGate.AtWork(batch(*c, "more"), 2) })
	t.Logf("mode %s: new work was served %s after the GCS was killed", mode, time.Since(killed).Round(100*time.Millisecond))
	if err := w.TaskGate.AtWork(batch(*c, "actor"), 2); err != nil {
		t.Error(err)
	}
	for _, name := range workers {
		if !slices.Contains(names(w.Workers(*c, "")), name) {
			t.Errorf("worker %s is gone", name)
		}
	}
	if n := w.Made(*c, ""); n != 4 {
		t.Errorf("%d workers were made instead of three and one more", n)
	}
	if deleted := w.Named(*c); len(deleted) > 0 {
		t.Errorf("pods %v were named for deletion", deleted)
	}
}

func names(pods []scaling.Seen) []string {
	var found []string
	for _, pod := range pods {
		found = append(found, pod.Name())
	}
	return found
}

// redisAt starts a Redis, and returns its address.
func redisAt(t *testing.T, w *scaling.World) string {
	t.Helper()
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: redis, namespace: default, labels: {app: redis}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: redis
    image: redis:lab
    command: [/bin/sh, -c, "exec redis-server --bind $POD_IP --port %d --protected-mode no --save '' --dir /tmp"]
    env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
---
apiVersion: v1
kind: Service
metadata: {name: redis, namespace: default}
spec: {selector: {app: redis}, ports: [{port: %d}]}
`, port, port)
	if _, _, err := w.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
	until(t, w, "Redis runs", func() error {
		pod, err := w.Pod("redis")
		if err != nil {
			return err
		}
		return isRunning(pod)
	})
	return fmt.Sprintf("redis:%d", port)
}

func isRunning(pod scaling.Seen) error {
	if phase := pod.Get("status.phase"); phase != "Running" {
		return fmt.Errorf("pod %s is %v", pod.Name(), phase)
	}
	return nil
}
