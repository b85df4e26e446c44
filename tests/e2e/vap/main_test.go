// Package vap_test holds the policies that `rayfit vap` prints against the
// webhook, on a real API server: whatever object, both come to the same verdict
// as far as each rule says that CEL covers it.
package vap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

var (
	l      *lab.Lab
	server *rig.Server
)

var noDeadline = context.Background()

func TestMain(m *testing.M) {
	code := 1
	if err := withLab(func() { code = m.Run() }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withLab(tests func()) (err error) {
	if _, err := rig.Binary(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-vap-")
	if err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if l, err = lab.Start(noDeadline, lab.Options{Dir: dir, AdmissionOnly: true, Progress: os.Stderr}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	if server, err = rig.Serve(noDeadline, l); err != nil {
		return err
	}
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + judged + `"}}`
	if _, err = l.Request(noDeadline, http.MethodPost, "/api/v1/namespaces", []byte(body)); err != nil {
		return err
	}
	tests()
	return nil
}
