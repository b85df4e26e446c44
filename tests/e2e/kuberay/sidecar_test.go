package kuberay_test

import (
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// The operator starts the autoscaler container of every cluster with a shell
// and Ray's command. With nothing but the annotation, that container is
// Rayfit's: it keeps its place and does not end, since it would not come back.
func TestTheAutoscalerContainerOfACentralClusterIsRayfitStandingBy(t *testing.T) {
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := startLab(t, lab.Options{
		Nodes: 1, Cores: 8, Memory: "16Gi",
		With:         []string{lab.WithOperator},
		OperatorEnv:  []string{"ENABLE_PROBES_INJECTION=false"},
		RayfitBinary: binary,
	})
	install(t, l)
	// Ray's own containers idle: this is about the one beside them.
	idle := []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"}
	cluster := rig.RayCluster("default", "central").
		Set("metadata.annotations[rayfit.dev/reconcile]", "central").
		Set("metadata.annotations[ray.io/overwrite-container-cmd]", "true").
		Set("spec.headGroupSpec.template.spec.containers[0].command", idle).
		Set("spec.workerGroupSpecs[0].template.spec.containers[0].command", idle)
	if _, _, err := l.Apply(cluster.YAML()); err != nil {
		t.Fatal(err)
	}
	labtest.Kubectl(t, l, "wait", "--for=jsonpath={.status.state}=ready", "raycluster/central", "--timeout=60s")

	head := labtest.Kubectl(t, l, "get", "pods", "-l", "ray.io/node-type=head", "-o", "jsonpath={.items[0].metadata.name}")
	container := func(field string) string {
		return labtest.Kubectl(t, l, "get", "pod", head, "-o", "jsonpath={.spec.containers[?(@.name=='autoscaler')]."+field+"}")
	}
	if got := container("image"); !strings.HasPrefix(got, "rayfit:") {
		t.Errorf("the image is %q", got)
	}
	if got := container("command") + container("args"); !within(got, `"/bin/bash"`) || !within(got, "ray kuberay-autoscaler") {
		t.Errorf("the operator's command has changed: %s", got)
	}
	if got := labtest.Kubectl(t, l, "exec", head, "-c", "autoscaler", "--", "/rayfit", "--version"); !strings.HasPrefix(got, "rayfit ") {
		t.Errorf("in the container is %q", got)
	}
	autoscalerRuns(t, l, head)

	// Rayfit's container is no reason for the operator not to do its own part.
	labtest.Kubectl(t, l, "patch", "raycluster", "central", "--type=json", "--patch", `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2}]`)
	labtest.Kubectl(t, l, "wait", "--for=jsonpath={.status.availableWorkerReplicas}=2", "raycluster/central", "--timeout=60s")
	autoscalerRuns(t, l, head)

	labtest.Kubectl(t, l, "delete", "raycluster", "central", "--wait=false")
	labtest.Kubectl(t, l, "wait", "--for=delete", "pod/"+head, "--timeout=60s")
}

// standsBy checks that the container runs since the pod does, and says what it is.
func autoscalerRuns(t *testing.T, l *lab.Lab, head string) {
	t.Helper()
	status := labtest.Kubectl(t, l, "get", "pod", head, "-o",
		"jsonpath={range .status.containerStatuses[?(@.name=='autoscaler')]}{.ready} {.restartCount} {.state}{end}")
	if !strings.HasPrefix(status, `true 0 {"running"`) {
		t.Errorf("the container is no longer what it was: %s", status)
	}
	const want = "waiting until the mode of RayCluster default/central is sidecar"
	waits := 0
	log := labtest.Kubectl(t, l, "logs", head, "-c", "autoscaler")
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, want):
			waits++
		// The port may be taken here, where pods share the machine's.
		case !strings.Contains(line, "metrics of Ray's autoscaler") && !strings.Contains(line, "Ray's autoscaler metrics"):
			t.Errorf("the container says %q", line)
		}
	}
	if waits != 1 {
		t.Errorf("the container says %q %d times instead of once:\n%s", want, waits, log)
	}
}
