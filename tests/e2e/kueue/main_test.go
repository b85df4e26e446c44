// Package kueue_test has Ray clusters with autoscaling in the queues of a real
// Kueue: its elastic workload slices, quotas and preemption. KubeRay's operator,
// Kubernetes and Ray are the real ones too.
package kueue_test

import (
	"fmt"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// stage is a lab with Kueue and a Rayfit controller in it.
type stage struct{ *scaling.World }

func newStage(t *testing.T) stage {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, lab.Options{
		Nodes: 1, Cores: 32, Memory: "64Gi", Ray: true, With: []string{lab.WithOperator, lab.WithKueue},
		// Probes are for pods that serve; here each would start a process a second.
		OperatorEnv:  []string{"ENABLE_PROBES_INJECTION=false"},
		RayfitBinary: binary,
	})
	w := scalingtest.Observe(t, l)
	t.Cleanup(func() {
		if t.Failed() {
			if said, _, err := l.Kubectl("get", "workloads,clusterqueues,jobs", "-A", "-o", "yaml"); err == nil {
				t.Logf("what Kueue had:\n%s", said)
			}
		}
	})
	if _, err := scaling.StartController(t.Context(), l, ""); err != nil {
		t.Fatal(err)
	}
	s := stage{w}
	s.apply(t, shared)
	return s
}

// shared is what all queues have in common.
const shared = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
`

// queue makes a LocalQueue with a ClusterQueue of its own, both of that name, whose
// quota is so much CPU and memory.
func (s stage) queue(t *testing.T, name, cpu, memory string) {
	t.Helper()
	s.apply(t, fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: any
      resources: [{name: cpu, nominalQuota: %[2]s}, {name: memory, nominalQuota: %[3]s}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: default}
spec: {clusterQueue: %[1]s}
`, name, cpu, memory))
}

// job makes a Job that takes one CPU of a queue until it is deleted, and waits
// until it runs.
func (s stage) job(t *testing.T, name, queue, priority string) {
	t.Helper()
	s.apply(t, fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default, labels: {kueue.x-k8s.io/queue-name: %s, kueue.x-k8s.io/priority-class: %s}}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example/sleep, command: [sleep, "3600"], resources: {requests: {cpu: 1, memory: 1Gi}}}]
`, name, queue, priority))
	s.kubectl(t, "wait", "job/"+name, "--for=jsonpath={.status.active}=1", "--timeout=120s")
}

func (s stage) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := s.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

func (s stage) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return labtest.Kubectl(t, s.Lab, append(args, "-n", s.Namespace)...)
}

func (s stage) until(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := s.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}

// drive makes a cluster and a driver in it, both of which end with their test.
func (s stage) drive(t *testing.T, c *scaling.Cluster) *scaling.Driver {
	t.Helper()
	scalingtest.Create(t, s.World, c)
	return scalingtest.Connect(t, *c, s.Drive)
}

// hold starts tasks of one CPU each, which work until their batch is let go.
func hold(t *testing.T, d *scaling.Driver, batch string, count int) {
	t.Helper()
	if err := d.Do(t.Context(), fmt.Sprintf("hold(%q, %d, num_cpus=1)", batch, count)); err != nil {
		t.Fatal(err)
	}
}

// atWork is nil once so many tasks of a batch work.
func (s stage) atWork(c scaling.Cluster, batch string, count int) func() error {
	return func() error { return s.TaskGate.AtWork(c.Name+":"+batch, count) }
}

// gated are the workers of a cluster that Kueue has not admitted.
func (s stage) gated(c scaling.Cluster) int {
	count := 0
	for _, pod := range s.Workers(c, "") {
		if gates, _ := pod.Get("spec.schedulingGates").([]any); len(gates) > 0 {
			count++
		}
	}
	return count
}

func contains(said, text string) error {
	if !strings.Contains(said, text) {
		return fmt.Errorf("%q does not say %q", said, text)
	}
	return nil
}
