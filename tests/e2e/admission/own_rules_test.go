package admission_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// ownRules are the policies that docs/own-rules.md shows.
func ownRules(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/own-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		documents = append(documents, block[1])
	}
	if len(documents) != 2 {
		t.Fatalf("docs/own-rules.md has %d examples", len(documents))
	}
	return strings.Join(documents, "---\n")
}

// The examples of docs/own-rules.md beside Rayfit's webhooks, in the order that the page tells.
func TestRulesOfOnesOwnStandBesideRayfits(t *testing.T) {
	const (
		refusal = "Images of Ray clusters come from registry.example, which is scanned"
		warning = "Warning: Validation failed for ValidatingAdmissionPolicy 'ray-gpus-have-a-cost-centre'"
	)
	space := namespace(t)
	scanned := func(name string) rig.Object {
		cluster := rig.RayCluster(space, name)
		for _, group := range []string{"spec.headGroupSpec", "spec.workerGroupSpecs[0]"} {
			cluster.Set(group+".template.spec.containers[0].image", "registry.example/ray:2.60.0")
		}
		return cluster
	}
	withGPU := func(cluster rig.Object) rig.Object {
		for _, list := range []string{"limits", "requests"} {
			cluster.Set("spec.workerGroupSpecs[0].template.spec.containers[0].resources."+list+"[nvidia.com/gpu]", "1")
		}
		return cluster
	}
	rules := ownRules(t)
	t.Cleanup(func() {
		cmd := shared.Lab.KubectlCommand(noDeadline, "delete", "--ignore-not-found", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	if _, stderr, err := shared.Lab.Apply(rules); err != nil {
		t.Fatal(stderr)
	}
	labtest.Eventually(t, time.Minute, "both policies hold", func() error {
		_, refused, _ := shared.Lab.Apply(rig.RayCluster(space, "probe").YAML())
		_, warned, _ := shared.Lab.Apply(withGPU(scanned("probe")).YAML())
		if !strings.Contains(refused, refusal) || !strings.Contains(warned, "cost-centre") {
			return errors.New(refused + warned)
		}
		return nil
	})

	if said := accepted(t, scanned("good")); said != "" {
		t.Errorf("nothing is wrong with it: %s", said)
	}
	// This one is refused by both, and the API server's own policies speak first.
	const cpus = "spec.workerGroupSpecs[0].rayStartParams.num-cpus"
	said := denied(t, rig.RayCluster(space, "both").Set(cpus, "many"))
	hasOnce(t, said, refusal)
	if strings.Contains(said, "RF204") {
		t.Errorf("Rayfit has been asked too: %s", said)
	}
	hasOnce(t, denied(t, scanned("rayfits").Set(cpus, "many")), "rayfit explain RF204")
	worker := scanned("worker").Set("spec.workerGroupSpecs[0].template.spec.containers[0].image", "elsewhere.example/ray:2.60.0")
	hasOnce(t, denied(t, worker), refusal)
	// The other rule only warns.
	hasOnce(t, accepted(t, withGPU(scanned("free"))), warning)
	paid := withGPU(scanned("paid")).Set("metadata.labels.cost-centre", "42")
	if said := accepted(t, paid); strings.Contains(said, "cost-centre") {
		t.Errorf("it has a cost centre: %s", said)
	}
}
