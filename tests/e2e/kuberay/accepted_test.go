package kuberay_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// fewestAccepted notices a fault that leaves only few objects to compare.
const fewestAccepted = 250

// refusals are what the operator, or Kubernetes when it makes the pods, refuses
// for reasons that are none of Rayfit's rules: by file, a part of the Event's
// message, and why it is left to them.
var refusals = map[string]struct{ message, because string }{
	"pytorch-resnet-image-classifier/ray-job.pytorch-image-classifier.yaml": {noServiceAccount, "the sample's reader makes it"},
	"ray-cluster.gke-bucket.yaml":                                           {noServiceAccount, "the sample's reader makes it"},
	"ray-cluster.kubernetes.auth.yaml":                                      {noServiceAccount, "it is in the same file; only Ray objects are created here"},
	"ray-cluster.kubernetes.auth-manual.yaml":                               {noServiceAccount, "it is in the same file; only Ray objects are created here"},
	"vllm/ray-service.vllm-tpu-v6e-singlehost.yaml":                         {noServiceAccount, "the sample's reader makes it"},
	"RF238/near-own-account.yaml":                                           {"ServiceAccount pulls-with-its-own is not found", "who names an account of one's own makes it"},
}

const noServiceAccount = "error looking up service account"

// refusedWhole says whether the reasons of Events are those of an object of which the operator makes nothing.
func refusedWhole(reasons string) bool {
	return within(reasons, "Invalid", "AutoscalerServiceAccountNotFound")
}

func TestWhatRayfitAdmitsTheOperatorAccepts(t *testing.T) {
	l := startLab(t, lab.Options{
		Workloads:    lab.NoProcesses,
		With:         []string{lab.WithOperator},
		OperatorArgs: []string{"--feature-gates=RayCronJob=true", "--qps=1000", "--burst=1000"},
	})
	install(t, l)

	files, objects := map[string]string{}, 0
	for _, m := range goodManifests(t) {
		if admitted(t, l, m) {
			files[m.namespace()] = m.file
			objects++
		}
	}
	if objects < fewestAccepted {
		t.Errorf("only %d objects are admitted, expected at least %d", objects, fewestAccepted)
	}
	suspendCronJobs(t, l)
	labtest.Eventually(t, patience, "wait until the operator has looked at every object", func() error { return allSeen(t, l) })

	checkRefusals(t, l, files)
	t.Logf("%d objects are admitted", objects)
}

// checkRefusals compares Events about objects that were not taken with the list.
func checkRefusals(t *testing.T, l *lab.Lab, files map[string]string) {
	t.Helper()
	wrong, left := map[string]string{}, maps.Clone(refusals)
	for _, event := range list(t, l, "events") {
		reason, message := text(event, "reason"), text(event, "message")
		file := files[text(event, "metadata.namespace")]
		// The operator's cache may lag behind what it has just made itself.
		if !refusedWhole(reason) && !within(reason, "FailedToCreate") || within(message, "already exists") {
			continue
		}
		if known, ok := refusals[file]; ok && strings.Contains(message, known.message) {
			delete(left, file)
		} else {
			wrong[file] = reason + ": " + message
		}
	}
	for file, message := range wrong {
		t.Errorf("%s is admitted by Rayfit and refused then: %s", file, message)
	}
	for file := range left {
		t.Errorf("%s is not refused any more: take it off the list", file)
	}
}

// goodManifests are KubeRay's samples, our examples and the near misses of our rules.
func goodManifests(t *testing.T) []manifest {
	t.Helper()
	near := func(file string) bool {
		return strings.Contains(file, "near-") && !within(file, ".old.", ".facts.")
	}
	good := func(file string) bool { return !strings.HasPrefix(file, "bad") }
	all := rayObjects(t, sampleFolder(t), everyFile)
	all = append(all, rayObjects(t, "../../../examples", good)...)
	return append(all, rayObjects(t, "../../fixtures/rules", near)...)
}

// admitted stores an object unless Rayfit denies it (a near miss of one rule
// may break another) or the API server knows that it is invalid.
func admitted(t *testing.T, l *lab.Lab, m manifest) bool {
	t.Helper()
	namespace := rig.Object{}.Set("metadata.name", m.namespace())
	if _, err := l.Request(t.Context(), "POST", "/api/v1/namespaces", namespace.JSON()); err != nil && !within(err.Error(), "already exists") {
		t.Fatal(err)
	}
	_, err := create(t, l, m.namespace(), m.object, "")
	if err == nil {
		return true
	}
	var status *lab.StatusError
	if !errors.As(err, &status) || !within(err.Error(), "rayfit.dev\" denied", "is invalid", "cannot be handled") {
		t.Errorf("%s: %v", m.file, err)
	}
	t.Logf("left out: %s: %.300v", m.file, err)
	return false
}

// suspendCronJobs makes the operator say so when it has looked at one.
func suspendCronJobs(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, job := range list(t, l, "raycronjobs") {
		labtest.Kubectl(t, l, "patch", "raycronjob", job.Name(), "-n", text(job, "metadata.namespace"), "--type=merge", `--patch={"spec":{"suspend":true}}`)
	}
}

// allSeen is nil when the operator has finished its first look at each object,
// also at those that it made itself. Parents come first: once they are seen,
// what they own is there.
func allSeen(t *testing.T, l *lab.Lab) error {
	t.Helper()
	reasons := map[string]string{}
	for _, event := range list(t, l, "events") {
		reasons[text(event, "involvedObject.uid")] += text(event, "reason")
	}
	var unseen []string
	for _, kind := range []string{"RayCronJob", "RayJob", "RayService", "RayCluster"} {
		for _, object := range list(t, l, collections[kind]) {
			if !seen(object, reasons[text(object, "metadata.uid")]) {
				unseen = append(unseen, fmt.Sprintf("%s %s/%s", kind, text(object, "metadata.namespace"), object.Name()))
			}
		}
	}
	if len(unseen) > 0 {
		return fmt.Errorf("%d objects are not seen, such as %s", len(unseen), unseen[0])
	}
	return nil
}

// seen says whether an object's status or the reasons of its Events show that
// it has been looked at, or whether it is another controller's. A RayCluster's
// first Events come while its pods are still to be made.
func seen(object rig.Object, reasons string) bool {
	if manager := text(object, "spec.managedBy"); manager != "" && manager != "ray.io/kuberay-operator" {
		return true
	}
	switch object["kind"] {
	case "RayCluster":
		return object.Get("status.observedGeneration") != nil || refusedWhole(reasons)
	case "RayJob":
		status := text(object, "status.jobDeploymentStatus")
		return reasons != "" || status != "" && status != "Initializing"
	default:
		return reasons != ""
	}
}
