// Package labtest starts labs for tests: in a folder of their own, with their
// progress on standard error, ended with what they were started for. It also
// waits for conditions in them, and runs kubectl.
package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// Start starts a lab that ends with its test. If the test has failed and
// $RAYFIT_KEEP_LOGS names a folder, the lab's logs are kept there.
func Start(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	l, end, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keepLogs(t, l)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Run starts a lab that all tests of a package share, prepares it, runs the
// tests, and ends it. It returns the code for the process to exit with.
func Run(m *testing.M, options lab.Options, prepare func(*lab.Lab) error) int {
	code := 1
	err := func() (err error) {
		l, end, err := New(context.Background(), options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		if err := prepare(l); err != nil {
			return err
		}
		code = m.Run()
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Eventually waits for a condition that no watch shows, and fails the test with
// the condition's last error if it has not come true within that time.
func Eventually(t testing.TB, timeout time.Duration, what string, condition func() error) {
	t.Helper()
	if err := lab.Eventually(t.Context(), timeout, what, condition); err != nil {
		t.Fatal(err)
	}
}

// Kubectl runs kubectl as admin, which must succeed, and returns what it prints.
func Kubectl(t testing.TB, l *lab.Lab, args ...string) string {
	t.Helper()
	stdout, _, err := l.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout)
}

// New starts a lab in a folder that is made for it, and returns what ends both.
func New(ctx context.Context, options lab.Options) (l *lab.Lab, end func() error, err error) {
	// Not a test's own folder: its name would make paths of sockets too long.
	dir, err := os.MkdirTemp("", "rayfit-lab-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for a lab: %w", err)
	}
	options.Dir, options.Progress = filepath.Join(dir, "lab"), os.Stderr
	if l, err = lab.Start(ctx, options); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return l, func() error { return errors.Join(l.Stop(), remove(dir)) }, nil
}

// remove removes a folder into which a process that is just ending may still
// write a file.
func remove(dir string) (err error) {
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func keepLogs(t *testing.T, l *lab.Lab) {
	t.Helper()
	folder := os.Getenv("RAYFIT_KEEP_LOGS")
	if folder == "" || !t.Failed() {
		return
	}
	target := filepath.Join(folder, t.Name())
	if err := os.RemoveAll(target); err == nil {
		err = os.CopyFS(target, os.DirFS(filepath.Join(l.Dir(), "logs")))
		t.Logf("logs are kept in %s (%v)", target, err)
	}
}
