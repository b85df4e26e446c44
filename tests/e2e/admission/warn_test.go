package admission_test

import (
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

func TestWhatIsOnlyRiskyIsStoredWithAWarning(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "risky").Remove("spec.workerGroupSpecs[0].maxReplicas")
	said := accepted(t, cluster)
	hasOnce(t, said, "Warning: RF213 spec.workerGroupSpecs[name=cpu].maxReplicas: ")
	stored(t, cluster)
}

func TestAWarningSaysWhatToWriteInstead(t *testing.T) {
	cluster := rig.WithGrowth(rig.RayCluster(namespace(t), "misspelt")).
		Set("spec.workerGroupSpecs[0].groupName", "cpus")
	said := strings.TrimSpace(accepted(t, cluster))
	hasOnce(t, said,
		`Warning: RF103 metadata.annotations["ray.io/ippr"].groups.cpu: names a group that this cluster does not have: "cpu"`,
		`Warning: RF103 fix: Write "cpus" if that is meant, or remove the entry.`)
}

func TestAGoodObjectIsStoredWithoutAWord(t *testing.T) {
	if said := accepted(t, rig.WithGrowth(rig.RayCluster(namespace(t), "good"))); said != "" {
		t.Errorf("kubectl says: %s", said)
	}
}

func TestADenialStillShowsTheWarnings(t *testing.T) {
	cluster := withFaults(rig.RayCluster(namespace(t), "bad"))
	cluster.Set("spec.workerGroupSpecs[1]", rig.WorkerGroup("endless")).Remove("spec.workerGroupSpecs[1].maxReplicas")
	hasOnce(t, denied(t, cluster), "Warning: RF213 spec.workerGroupSpecs[name=endless].maxReplicas: ", "rayfit explain RF101")
}

func TestARuleCanBeTurnedDownToAWarning(t *testing.T) {
	serveWith(t, "--rule", "RF201=warn", "--rule", "RF213=off", "--rule", "RF214=enforce")
	ns := namespace(t)

	hasOnce(t, accepted(t, tooMany(rig.RayCluster(ns, "turned-down"))), "Warning: RF201 spec")
	silent := rig.RayCluster(ns, "turned-off").Remove("spec.workerGroupSpecs[0].maxReplicas")
	lacks(t, accepted(t, silent), "RF213")
	turnedUp := rig.RayCluster(ns, "turned-up").Remove("spec.headGroupSpec.rayStartParams.num-cpus")
	hasOnce(t, denied(t, turnedUp), "rayfit explain RF214")
}
