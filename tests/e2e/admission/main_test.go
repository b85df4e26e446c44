// Package admission_test shows what a person with kubectl meets when Rayfit's
// webhooks stand before a real API server. All tests share one lab, one after
// the other; each works in a namespace of its own.
package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// shared is the lab with Rayfit in front of it, failing open.
var shared *rig.Rig

var noDeadline = context.Background()

func TestMain(m *testing.M) {
	code := 1
	if err := withRig(func() { code = m.Run() }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withRig(tests func()) (err error) {
	if _, err := rig.Binary(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-e2e-")
	if err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(noDeadline, lab.Options{
		Dir: dir, AdmissionOnly: true, Audit: lab.AuditMetadata, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	if shared, err = rig.Start(noDeadline, l); err != nil {
		return err
	}
	tests()
	return nil
}
