package lab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// minGoMinor is the Go 1.x that Kubernetes' go.mod asks for.
const minGoMinor = 26

// goVersion checks that there is a Go that can build the lab.
func goVersion(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("building the lab needs Go 1.%d or newer and there is no `go` on the PATH: install it from your distribution or go.dev: %w", minGoMinor, err)
	}
	raw, err := runGo(ctx, "", "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(string(raw))
	if !newEnough(version) {
		return "", fmt.Errorf("building the lab needs Go 1.%d or newer, this is %s: install a newer one", minGoMinor, version)
	}
	return version, nil
}

// newEnough is true for a version like go1.26.1 at or above minGoMinor, and for
// development versions, which are not numbered.
func newEnough(version string) bool {
	rest, released := strings.CutPrefix(version, "go1.")
	if !released {
		return strings.HasPrefix(version, "devel")
	}
	digits := strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return false
	}
	minor, err := strconv.Atoi(digits[0])
	return err == nil && minor >= minGoMinor
}

// runGo runs the go command, apart from any workspace and vendor folder.
func runGo(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return runGoAloud(ctx, dir, func(string) bool { return false }, args...)
}

// runGoAloud is runGo for what takes long: each line of its standard error is heard, and
// is part of no error if hear has understood it.
func runGoAloud(ctx context.Context, dir string, hear func(line string) bool, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("hear what go %s says: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w", args[0], dir, err)
	}
	var complaint strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if !hear(lines.Text()) {
			fmt.Fprintln(&complaint, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, tail(complaint.String(), 20))
	}
	return stdout.Bytes(), nil
}
