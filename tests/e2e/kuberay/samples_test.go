package kuberay_test

import (
	"os/exec"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// fewestSamples is less than KubeRay has, so that a new version does not fail,
// and enough to notice that they are not found.
const fewestSamples = 60

func TestEverySampleOfKubeRayIsAdmitted(t *testing.T) {
	l := startLab(t, lab.Options{AdmissionOnly: true})
	install(t, l)
	samples := rayObjects(t, sampleFolder(t), everyFile)
	if len(samples) < fewestSamples {
		t.Errorf("only %d samples are found, expected at least %d", len(samples), fewestSamples)
	}
	for _, sample := range samples {
		if _, err := create(t, l, "default", sample.object, "dryRun=All"); err != nil {
			t.Errorf("%s, %s %s: %v", sample.file, sample.object["kind"], sample.object.Name(), err)
		}
	}
	t.Logf("%d samples are admitted", len(samples))
}

func TestCheckOfTheFolderOfSamplesIsClean(t *testing.T) {
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), binary, "check", sampleFolder(t)).CombinedOutput()
	if err != nil {
		t.Errorf("rayfit check: %v\n%s", err, output)
	}
}
