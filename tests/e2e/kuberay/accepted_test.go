package kuberay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// fewestAccepted notices a fault that leaves only few objects to compare.
const fewestAccepted = 250

// refusedByOperator is what the operator refuses for reasons that are not for
// Rayfit to know, by file: a part of the Event's text, and why.
var refusedByOperator = map[string]struct{ event, because string }{}

func TestWhatRayfitAdmitsTheOperatorAccepts(t *testing.T) {
	l := startLab(t, lab.Options{
		Workloads:    lab.NoProcesses,
		With:         []string{lab.WithOperator},
		OperatorArgs: []string{"--feature-gates=RayCronJob=true", "--qps=1000", "--burst=1000"},
	})
	install(t, l)

	stored := map[string]manifest{}
	for _, m := range goodManifests(t) {
		if object, ok := admitted(t, l, m); ok {
			stored[text(object, "metadata.uid")] = manifest{m.file, object}
		}
	}
	if len(stored) < fewestAccepted {
		t.Errorf("only %d objects are admitted, expected at least %d", len(stored), fewestAccepted)
	}
	suspendCronJobs(t, l)
	eventually(t, "wait until the operator has looked at every object", func() error { return allSeen(t, l) })

	for _, event := range list(t, l, "events") {
		file := event.Get("metadata.namespace").(string)
		if refusal(event) && !expected(file, event) {
			t.Errorf("%s: %s %s: %s: %s", file, text(event, "involvedObject.kind"), text(event, "involvedObject.name"), text(event, "reason"), text(event, "message"))
		}
	}
	t.Logf("%d objects are admitted", len(stored))
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
func admitted(t *testing.T, l *lab.Lab, m manifest) (rig.Object, bool) {
	t.Helper()
	namespace := rig.Object{}.Set("metadata.name", m.namespace())
	if _, err := l.Request(t.Context(), "POST", "/api/v1/namespaces", namespace.JSON()); err != nil && !within(err.Error(), "already exists") {
		t.Fatal(err)
	}
	object, err := create(t, l, m.namespace(), m.object, "")
	if err == nil {
		return object, true
	}
	var status *lab.StatusError
	if !errors.As(err, &status) || !within(err.Error(), "rayfit.dev\" denied", "is invalid", "cannot be handled") {
		t.Errorf("%s: %v", m.file, err)
	}
	t.Logf("left out: %s: %.300v", m.file, err)
	return nil, false
}

// suspendCronJobs makes the operator say so when it has looked at one.
func suspendCronJobs(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, job := range list(t, l, "raycronjobs") {
		kubectl(t, l, "patch", "raycronjob", job.Name(), "-n", text(job, "metadata.namespace"), "--type=merge", `--patch={"spec":{"suspend":true}}`)
	}
}

// allSeen is nil when each object, also those that the operator made, has an
// Event or a status from the operator.
func allSeen(t *testing.T, l *lab.Lab) error {
	t.Helper()
	told := map[string]bool{}
	for _, event := range list(t, l, "events") {
		told[text(event, "involvedObject.uid")] = true
	}
	var unseen []string
	for kind, collection := range collections {
		for _, object := range list(t, l, collection) {
			if !told[text(object, "metadata.uid")] && !settled(object) {
				unseen = append(unseen, fmt.Sprintf("%s %s/%s", kind, text(object, "metadata.namespace"), object.Name()))
			}
		}
	}
	if len(unseen) > 0 {
		return fmt.Errorf("%d objects have neither Event nor status, such as %s", len(unseen), unseen[0])
	}
	return nil
}

// settled says whether an object's status shows that it has been validated, or
// whether it is another controller's.
func settled(object rig.Object) bool {
	manager := text(object, "spec.managedBy")
	job := text(object, "status.jobDeploymentStatus")
	return manager != "" && manager != "ray.io/kuberay-operator" ||
		text(object, "status.observedGeneration") != "" && object["kind"] != "RayJob" ||
		job != "" && job != "Initializing"
}

// refusal says whether an Event is about an object that the operator does not take.
func refusal(event rig.Object) bool {
	reason := text(event, "reason")
	return strings.HasPrefix(reason, "Invalid") || strings.HasPrefix(reason, "FailedToCreate")
}

func expected(namespace string, event rig.Object) bool {
	known, ok := refusedByOperator[namespace]
	return ok && strings.Contains(text(event, "message"), known.event)
}
