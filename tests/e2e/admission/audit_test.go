package admission_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// auditEvent is what the API server's audit log keeps of a request.
type auditEvent struct {
	Verb      string
	ObjectRef struct {
		Resource, Namespace, Name string
	}
	Annotations map[string]string
}

// audited waits for the creation of an object in the audit log.
func audited(t *testing.T, object rig.Object) map[string]string {
	t.Helper()
	var annotations map[string]string
	labtest.Eventually(t, timeout, "wait for "+object.Name()+" in the audit log", func() error {
		file, err := os.Open(shared.Lab.AuditLog())
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event auditEvent
			// The last line may still be being written.
			if json.Unmarshal(lines.Bytes(), &event) == nil && event.creates(object) {
				annotations = event.Annotations
				return nil
			}
		}
		return fmt.Errorf("it is not there: %w", lines.Err())
	})
	return annotations
}

func (e auditEvent) creates(object rig.Object) bool {
	return e.Verb == "create" && e.ObjectRef.Resource == "rayclusters" &&
		e.ObjectRef.Namespace == object.Get("metadata.namespace") && e.ObjectRef.Name == object.Name()
}

func TestTheAuditLogSaysWhatWasDeniedWarnedOfAndDefaulted(t *testing.T) {
	ns := namespace(t)
	bad := withFaults(rig.RayCluster(ns, "bad"))
	denied(t, bad)
	risky := rig.RayCluster(ns, "risky").
		Remove("spec.workerGroupSpecs[0].maxReplicas").
		Remove("spec.headGroupSpec.rayStartParams.num-cpus")
	accepted(t, risky)

	const validate, mutate = "validate.raycluster.rayfit.dev/", "mutate.raycluster.rayfit.dev/"
	if got := audited(t, bad); got[validate+"denied"] != "RF101,RF201,RF204" {
		t.Errorf("of the bad one the audit log keeps %v", got)
	}
	got := audited(t, risky)
	if got[validate+"warned"] != "RF213" || got[validate+"audited"] != "RF214" {
		t.Errorf("of the risky one the audit log keeps %v", got)
	}
	hasOnce(t, got[mutate+"defaulted"], "DF05 spec.autoscalerOptions.idleTimeoutSeconds = 60")
}
