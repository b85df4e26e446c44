// Package vap_test holds the policies that `rayfit vap` prints against the
// webhook, on a real API server: whatever object, both come to the same verdict
// as far as each rule says that CEL covers it.
package vap_test

import (
	"context"
	"net/http"
	"os"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

var (
	l      *lab.Lab
	server *rig.Server
)

var noDeadline = context.Background()

func TestMain(m *testing.M) {
	os.Exit(labtest.Run(m, lab.Options{AdmissionOnly: true}, prepare))
}

func prepare(started *lab.Lab) (err error) {
	l = started
	if server, err = rig.Serve(noDeadline, l); err != nil {
		return err
	}
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + judged + `"}}`
	_, err = l.Request(noDeadline, http.MethodPost, "/api/v1/namespaces", []byte(body))
	return err
}
