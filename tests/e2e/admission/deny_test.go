package admission_test

import (
	"net/http"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// withFaults gives a cluster three faults, of the rules RF101, RF201 and RF204.
func withFaults(cluster rig.Object) rig.Object {
	return cluster.
		Set("metadata.annotations[ray.io/ippr]", "not JSON").
		Set("spec.workerGroupSpecs[0].minReplicas", 9).
		Set("spec.workerGroupSpecs[0].rayStartParams.num-gpus", "0.5")
}

// tooMany lets a group of any kind of object have more pods than it may (RF201).
func tooMany(object rig.Object) rig.Object {
	return object.Set(rig.ClusterSpecPath(object["kind"].(string))+".workerGroupSpecs[0].minReplicas", 9)
}

func TestKubectlShowsEveryFaultOnceWithPlaceReasonAndRemedy(t *testing.T) {
	said := denied(t, withFaults(rig.RayCluster(namespace(t), "bad")))

	hasOnce(t, said,
		`The RayCluster "bad" is invalid:`,
		"\n* metadata.annotations[ray.io/ippr]: is not JSON",
		"\n* spec.workerGroupSpecs[0].minReplicas: 9 is above maxReplicas, which is 4. KubeRay stops",
		"Lower minReplicas to 4 or raise maxReplicas to 9. (group cpu; rayfit explain RF201)",
		"\n* spec.workerGroupSpecs[0].rayStartParams.num-gpus: ",
		"RF101", "RF204",
	)
	if faults := strings.Count(said, "\n* "); faults != 3 {
		t.Errorf("%d faults are listed instead of 3:\n%s", faults, said)
	}
}

func TestKubectlShowsASingleFaultInOneLine(t *testing.T) {
	said := strings.TrimSpace(denied(t, tooMany(rig.RayCluster(namespace(t), "bad"))))
	hasOnce(t, said, `The RayCluster "bad" is invalid: spec.workerGroupSpecs[0].minReplicas: 9 is above`)
	lacks(t, said, "\n")
}

// Clients other than kubectl show the status' message, not its causes.
func TestOtherClientsFindEveryFaultInTheMessage(t *testing.T) {
	ns := namespace(t)
	path := "/apis/ray.io/v1/namespaces/" + ns + "/rayclusters"
	_, err := shared.Lab.Request(t.Context(), http.MethodPost, path, withFaults(rig.RayCluster(ns, "bad")).JSON())
	if err == nil {
		t.Fatal("the cluster is accepted")
	}
	hasOnce(t, err.Error(),
		"API server says 422",
		`admission webhook "validate.raycluster.rayfit.dev" denied the request: 3 problems:`,
		"\n- RF101 metadata.annotations[\"ray.io/ippr\"]: is not JSON",
		"\n- RF201 spec.workerGroupSpecs[name=cpu].minReplicas: 9 is above",
		"\n- RF204 spec.workerGroupSpecs[name=cpu].rayStartParams.num-gpus: ",
	)
}

// allKinds has an object of each kind that this KubeRay has: RayCronJob came with 1.6.
func allKinds(t *testing.T, ns string) []rig.Object {
	t.Helper()
	all := []rig.Object{rig.RayCluster(ns, "a"), rig.RayJob(ns, "b"), rig.RayService(ns, "c")}
	if lab.KubeRay() != lab.OlderKubeRayVersion {
		all = append(all, rig.RayCronJob(ns, "d"))
	}
	return all
}

func TestAllKindsAreDeniedAtTheirOwnPlace(t *testing.T) {
	for _, object := range allKinds(t, namespace(t)) {
		kind := object["kind"].(string)
		said := denied(t, tooMany(object.Clone()))
		hasOnce(t, said, rig.ClusterSpecPath(kind)+".workerGroupSpecs[0].minReplicas: 9 is above", "The "+kind)

		accepted(t, object)
		has(t, stored(t, object), rig.ClusterSpecPath(kind)+".autoscalerOptions.idleTimeoutSeconds", 60.0)
	}
}

// A stored v1alpha1 manifest is judged by the same rules.
func TestTheOldAPIVersionIsJudgedAndDefaultedToo(t *testing.T) {
	ns := namespace(t)
	for _, object := range []rig.Object{rig.RayCluster(ns, "a"), rig.RayJob(ns, "a"), rig.RayService(ns, "a")} {
		object.Set("apiVersion", "ray.io/v1alpha1")
		hasOnce(t, denied(t, tooMany(object.Clone())), "9 is above maxReplicas")

		accepted(t, object)
		cluster := rig.ClusterSpecPath(object["kind"].(string))
		has(t, stored(t, object), cluster+".autoscalerOptions.idleTimeoutSeconds", 60.0)
	}
}

func TestAnObjectWhoseNameIsMadeUpIsJudged(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "").Remove("metadata.name").Set("metadata.generateName", "try-")

	_, said, err := run(t, tooMany(cluster.Clone()), "create")
	if err == nil {
		t.Fatal("a bad cluster is accepted")
	}
	hasOnce(t, said, `The RayCluster "try-`, `is invalid: spec.workerGroupSpecs[0].minReplicas: 9 is above`)

	if made, said, err := run(t, cluster, "create"); err != nil || !strings.Contains(made, "raycluster.ray.io/try-") {
		t.Errorf("a good cluster: %v: %s%s", err, made, said)
	}
}

func TestADryRunAnswersTheSameAndIsNotCounted(t *testing.T) {
	ns := namespace(t)
	good, bad := rig.RayCluster(ns, "good"), tooMany(rig.RayCluster(ns, "bad"))
	findings := func() float64 { return metrics(t).Sum("rayfit_findings_total") }
	before := findings()

	dry := denied(t, bad, "--dry-run=server")
	stdout, _, err := run(t, good, "apply", "--dry-run=server", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	has(t, parsed(t, stdout), "spec.autoscalerOptions.idleTimeoutSeconds", 60.0)
	if got := findings(); got != before {
		t.Errorf("findings of dry runs are counted: %v before, %v after", before, got)
	}
	if got := kubectl(t, "get", "rayclusters", "-n", ns, "-o", "name"); got != "" {
		t.Errorf("a dry run has stored %s", got)
	}

	if got := denied(t, bad); got != dry {
		t.Errorf("a dry run says:\n%s\nthe real one:\n%s", dry, got)
	}
	if got := findings(); got == before {
		t.Errorf("findings of a real denial are not counted: still %v", got)
	}
}
