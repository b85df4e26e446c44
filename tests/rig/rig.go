package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// timeout is how long anything here may take on a busy machine.
const timeout = 5 * time.Minute

// Rig is a Rayfit in front of a lab's API server.
type Rig struct {
	Lab    *lab.Lab
	Server *Server
	// Flags are those of the install, beside how it fails.
	Flags []string
}

// Start starts Rayfit for a lab and installs its webhooks, failing open. They
// are in effect when it returns. args are added to `rayfit serve`.
func Start(ctx context.Context, l *lab.Lab, args ...string) (*Rig, error) {
	server, err := Serve(ctx, l, args...)
	if err != nil {
		return nil, err
	}
	r := &Rig{Lab: l, Server: server}
	return r, r.Install(ctx, FailOpen)
}

// Binary is the rayfit that tests are about: $RAYFIT_BIN.
func Binary() (string, error) {
	path := os.Getenv("RAYFIT_BIN")
	if path == "" {
		return "", errors.New("RAYFIT_BIN names no binary to test: run `make test-lab`, or build one and set RAYFIT_BIN to its absolute path")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("RAYFIT_BIN: run `make test-lab`, which builds the binary first: %w", err)
	}
	return path, nil
}

// Output is what the binary prints when it is run with arguments.
func Output(ctx context.Context, args ...string) (string, error) {
	binary, err := Binary()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("rayfit %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
