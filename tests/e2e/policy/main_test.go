// Package policy_test rolls rules out on a real API server: RayPolicies, the
// background audit, and failing closed. All tests share one lab, one after the
// other; each works in a namespace of its own.
package policy_test

import (
	"context"
	"os"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

var shared *rig.Rig

var noDeadline = context.Background()

// patience is how long a condition may take to come true on a busy machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	os.Exit(labtest.Run(m, lab.Options{AdmissionOnly: true}, prepare))
}

func prepare(l *lab.Lab) error {
	definitions, err := rig.Output(noDeadline, "crd")
	if err != nil {
		return err
	}
	if _, _, err := l.Apply(definitions); err != nil {
		return err
	}
	if _, _, err := l.Kubectl("create", "namespace", "rayfit-system"); err != nil {
		return err
	}
	shared, err = rig.Start(noDeadline, l, "--no-controller", "--kubeconfig="+l.Kubeconfig())
	return err
}
