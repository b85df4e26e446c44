// Package admission_test shows what a person with kubectl meets when Rayfit's
// webhooks stand before a real API server. All tests share one lab, one after
// the other; each works in a namespace of its own.
package admission_test

import (
	"context"
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// shared is the lab with Rayfit in front of it, failing open.
var shared *rig.Rig

var noDeadline = context.Background()

func TestMain(m *testing.M) {
	options := lab.Options{AdmissionOnly: true, Audit: lab.AuditMetadata}
	os.Exit(labtest.Run(m, options, func(l *lab.Lab) (err error) {
		shared, err = rig.Start(noDeadline, l)
		return err
	}))
}
