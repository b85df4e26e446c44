package kuberay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// The namespaces of objects that were there before Rayfit, and came after it.
const (
	older = "older"
	newer = "newer"
)

// Every spec that Rayfit could complete is here, stored without and with its
// defaults. Whatever then happens that is no change of a spec by its owner must
// leave specs, generations and pods as they are.
func TestRayfitStartsNoUpgradeAndNoLoop(t *testing.T) {
	l := startLab(t, lab.Options{
		Nodes: 1, Cores: 64, Memory: "256Gi",
		Workloads: lab.NoProcesses,
		With:      []string{lab.WithOperator},
	})
	apply(t, l, older)
	running(t, l, 3)
	before := state(t, l)

	install(t, l)
	unchanged(t, l, "Rayfit is installed", before)
	if strings.Contains(before, "idleTimeoutSeconds") {
		t.Error("objects from before Rayfit have its defaults: the test shows nothing")
	}

	apply(t, l, newer)
	running(t, l, 6)
	for _, kind := range []string{"raycluster", "rayjob", "rayservice"} {
		if stored := labtest.Kubectl(t, l, "get", kind, "-n", newer, "-o", "yaml"); !within(stored, "idleTimeoutSeconds: 60") {
			t.Errorf("a %s from after Rayfit has no defaults:\n%s", kind, stored)
		}
	}
	now := state(t, l)

	for _, namespace := range []string{older, newer} {
		labtest.Kubectl(t, l, "annotate", "rayclusters,rayjobs,rayservices", "--all", "-n", namespace, "example.com/note=seen")
		labtest.Kubectl(t, l, "label", "rayclusters,rayjobs,rayservices", "--all", "-n", namespace, "example.com/team=a")
	}
	unchanged(t, l, "annotations and labels of others", now)

	apply(t, l, older)
	apply(t, l, newer)
	unchanged(t, l, "the same manifests applied again", now)

	// RayClusters only: of a RayJob or RayService the operator itself has become
	// the owner of the worker groups.
	for _, namespace := range []string{older, newer} {
		cluster := write(t, cluster(namespace))
		labtest.Kubectl(t, l, "apply", "-f", cluster, "--server-side", "--field-manager=gitops", "--force-conflicts")
		labtest.Kubectl(t, l, "apply", "-f", cluster, "--server-side", "--field-manager=gitops")
		unchanged(t, l, "server-side apply", now)
		labtest.Kubectl(t, l, "replace", "-f", cluster)
		unchanged(t, l, "a manifest without the defaults in place of the object", now)
	}

	if err := l.RestartOperator(t.Context()); err != nil {
		t.Fatal(err)
	}
	unchanged(t, l, "the operator's restart", now)

	for _, cluster := range list(t, l, "rayclusters") {
		scaleUpAndDown(t, l, cluster)
	}
	unchanged(t, l, "scaling", state(t, l))
	noneDenied(t, l)
}

// A RayService that gets another worker group is updated in place by the
// operator. Rayfit must let it, also where it does not know that it is the
// operator, and must not make it an upgrade to a second cluster.
func TestTheOperatorUpdatesTheClustersThatItOwns(t *testing.T) {
	l := startLab(t, lab.Options{
		Nodes: 1, Cores: 64, Memory: "256Gi",
		Workloads: lab.NoProcesses,
		With:      []string{lab.WithOperator},
	})
	apply(t, l, older)
	running(t, l, 3)
	install(t, l, "--operator-user=system:serviceaccount:elsewhere:operator")
	apply(t, l, newer)
	running(t, l, 6)
	before := children(t, l)

	for _, namespace := range []string{older, newer} {
		group := rig.WorkerGroup("second")
		patch := rig.Object{}.Set("spec.rayClusterConfig.workerGroupSpecs", []any{asWritten(bare(rig.RayService("", ""))).Get("spec.rayClusterConfig.workerGroupSpecs[0]"), group})
		labtest.Kubectl(t, l, "patch", "rayservice", "service", "-n", namespace, "--type=merge", "--patch", string(patch.JSON()))
	}
	labtest.Eventually(t, patience, "wait for the new groups' pods", func() error {
		if n := strings.Count(labtest.Kubectl(t, l, "get", "pods", "-A", "-l", "ray.io/group=second", "--no-headers"), "Running"); n != 2 {
			return fmt.Errorf("%d of 2 run", n)
		}
		return nil
	})
	lookedAgain(t, l)

	after := strings.Join(children(t, l), "\n")
	for _, line := range before {
		if what := strings.Join(strings.Fields(line)[:3], " "); !strings.Contains(after, what) {
			t.Errorf("%s is gone; there is\n%s", what, after)
		}
	}
	if n := len(list(t, l, "rayclusters")); n != 6 {
		t.Errorf("%d RayClusters instead of 6:\n%s", n, after)
	}
	noneDenied(t, l)
}

// bare takes away what Rayfit would fill in: a group that grows in place has
// neither requests nor a resize policy.
func bare(object rig.Object) rig.Object {
	rig.WithGrowth(object)
	spec := rig.ClusterSpecPath(object["kind"].(string))
	return object.Remove(spec + ".workerGroupSpecs[0].template.spec.containers[0].resources.requests")
}

func cluster(namespace string) rig.Object {
	return bare(rig.RayCluster(namespace, "cluster")).Set("spec.upgradeStrategy.type", "Recreate")
}

// asWritten adds the empty values that the operator writes into the worker
// groups of a RayJob or RayService, with Rayfit or without: applying a manifest
// that lacks them changes the object each time.
func asWritten(object rig.Object) rig.Object {
	group := rig.ClusterSpecPath(object["kind"].(string)) + ".workerGroupSpecs[0]"
	return object.Set(group+".scaleStrategy", map[string]any{}).Set(group+".template.metadata", map[string]any{})
}

// write writes objects into a file.
func write(t *testing.T, objects ...rig.Object) string {
	t.Helper()
	var documents []string
	for _, object := range objects {
		documents = append(documents, object.YAML())
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// apply applies an object of each kind in a namespace, making it if need be.
func apply(t *testing.T, l *lab.Lab, namespace string) {
	t.Helper()
	if _, _, err := l.Kubectl("get", "namespace", namespace); err != nil {
		labtest.Kubectl(t, l, "create", "namespace", namespace)
	}
	job, service := asWritten(bare(rig.RayJob(namespace, "job"))), asWritten(bare(rig.RayService(namespace, "service")))
	labtest.Kubectl(t, l, "apply", "-f", write(t, cluster(namespace), job, service))
}

// running waits until a number of RayClusters, and what comes with them, is there.
func running(t *testing.T, l *lab.Lab, clusters int) {
	t.Helper()
	labtest.Eventually(t, patience, "wait until the RayClusters run", func() error {
		ready := 0
		for _, cluster := range list(t, l, "rayclusters") {
			if text(cluster, "status.state") == "ready" && text(cluster, "status.availableWorkerReplicas") == "1" {
				ready++
			}
		}
		if ready != clusters {
			return fmt.Errorf("%d of %d are ready", ready, clusters)
		}
		return nil
	})
	lookedAgain(t, l)
}

// unchanged checks that nothing comes of what has happened.
func unchanged(t *testing.T, l *lab.Lab, what, want string) {
	t.Helper()
	lookedAgain(t, l)
	got := state(t, l)
	for line := range strings.Lines(want) {
		if !strings.Contains(got, strings.TrimSpace(line)) {
			t.Errorf("after %s this is not as it was:\n%s", what, line)
		}
	}
	if t.Failed() {
		t.Fatalf("after %s there is:\n%s", what, got)
	}
	if got != want {
		t.Fatalf("after %s there is more than before:\n%s\nbefore:\n%s", what, got, want)
	}
}

// scaleUpAndDown changes a cluster as its own autoscaler does, with the rights
// that the operator gave to it. The pods that were there must stay.
func scaleUpAndDown(t *testing.T, l *lab.Lab, cluster rig.Object) {
	t.Helper()
	before := strings.Join(children(t, l), "\n")
	pods := workers(t, l, cluster)
	scale(t, l, cluster, 2, "[]")
	labtest.Eventually(t, patience, "wait for a second worker of "+place(cluster), func() error {
		if n := len(workers(t, l, cluster)); n != 2 {
			return fmt.Errorf("%d workers", n)
		}
		return nil
	})
	var surplus string
	for _, pod := range workers(t, l, cluster) {
		if pod != pods[0] {
			surplus = pod
		}
	}
	scale(t, l, cluster, 1, fmt.Sprintf("[%q]", surplus))
	labtest.Eventually(t, patience, "wait until "+place(cluster)+" is as before", func() error {
		if after := strings.Join(children(t, l), "\n"); after != before {
			return fmt.Errorf("there is\n%s\nbefore:\n%s", after, before)
		}
		return nil
	})
}

func workers(t *testing.T, l *lab.Lab, cluster rig.Object) []string {
	t.Helper()
	return strings.Fields(labtest.Kubectl(t, l, "get", "pods", "-n", text(cluster, "metadata.namespace"),
		"-l", "ray.io/node-type=worker,ray.io/cluster="+cluster.Name(), "-o", "jsonpath={.items[*].metadata.name}"))
}

// scale sends the patch that Ray's autoscaler sends.
func scale(t *testing.T, l *lab.Lab, cluster rig.Object, replicas int, workersToDelete string) {
	t.Helper()
	namespace := text(cluster, "metadata.namespace")
	account := labtest.Kubectl(t, l, "get", "pods", "-n", namespace, "-l", "ray.io/node-type=head,ray.io/cluster="+cluster.Name(),
		"-o", "jsonpath={.items[0].spec.serviceAccountName}")
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":%d},
		{"op":"replace","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":%s}}]`, replicas, workersToDelete)
	if replicas == 2 {
		patch = strings.Replace(patch, `"op":"replace","path":"/spec/workerGroupSpecs/0/scale`, `"op":"add","path":"/spec/workerGroupSpecs/0/scale`, 1)
	}
	_, _, err := l.KubectlAs("system:serviceaccount:"+namespace+":"+account, nil,
		"patch", "raycluster", cluster.Name(), "-n", namespace, "--type=json", "--patch", patch)
	if err != nil {
		t.Fatal(err)
	}
}

// noneDenied checks that the operator met no denial.
func noneDenied(t *testing.T, l *lab.Lab) {
	t.Helper()
	log, err := l.Logs("operator")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		if within(line, "denied the request", "failed calling webhook") {
			t.Errorf("the operator met a denial: %s", line)
		}
	}
}
