package admission_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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
		`Warning: RF103 fix: Write "cpus" if you mean that, or remove the entry.`)
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

// API servers pass on 4096 characters of warnings in all, and cut and drop beyond.
func TestOfManyWarningsTheAPIServerCutsNone(t *testing.T) {
	const groups, most = 150, 4096
	cluster := rig.RayCluster(namespace(t), "many")
	for i := range groups {
		group := fmt.Sprintf("spec.workerGroupSpecs[%d]", i)
		cluster.Set(group, rig.WorkerGroup(fmt.Sprintf("a-group-without-an-upper-bound-%d", i))).Remove(group + ".maxReplicas")
	}
	path := "/apis/ray.io/v1/namespaces/" + cluster.Get("metadata.namespace").(string) + "/rayclusters?dryRun=All"
	_, warnings, err := shared.Lab.RequestWarned(t.Context(), http.MethodPost, path, cluster.JSON())
	if err != nil {
		t.Fatal(err)
	}
	characters, shown := 0, 0
	for _, warning := range warnings {
		text, err := strconv.Unquote(warning)
		if err != nil {
			t.Fatalf("%s: %v", warning, err)
		}
		characters += utf8.RuneCountInString(text)
		if strings.HasPrefix(text, "RF213 spec") {
			shown++
		}
	}
	last := warnings[len(warnings)-1]
	if want := fmt.Sprintf("+%d more (rayfit check shows all)", groups-shown); !strings.Contains(last, want) {
		t.Errorf("of %d findings %d are shown, and the last warning is %s", groups, shown, last)
	}
	if characters > most || characters < most*9/10 {
		t.Errorf("the warnings have %d characters, of %d", characters, most)
	}
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
