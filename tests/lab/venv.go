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

// rayRequirement is what is installed for Ray containers.
const rayRequirement = "ray[default]==" + RayVersion

// rayComplete is the file that says that an environment is complete.
const rayComplete = "ray.complete"

// rayFirst is how long it takes to make one.
const rayFirst = "about 2 min"

// rayPlace is the Python that an environment with Ray is made with, and its key.
func rayPlace(ctx context.Context) (python, key string, err error) {
	if python, err = exec.LookPath("python3"); err != nil {
		return "", "", fmt.Errorf("Ray in the lab needs python3 with venv and pip on the PATH: install it: %w", err)
	}
	version, err := run(ctx, python, "-c", "import sys; print(sys.version_info[:3], sys.prefix)")
	return python, textKey(rayRequirement, version), err
}

// rayEnvironment returns the bin folder of a virtual environment with Ray.
//
// Such an environment has its own path in its scripts and cannot be renamed
// into place as binaries are; so a file beside it says that it is complete.
func rayEnvironment(ctx context.Context, say *progress) (string, error) {
	python, key, err := rayPlace(ctx)
	if err != nil {
		return "", err
	}
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	home := filepath.Join(root, key, "ray")
	_, err = cached(ctx, say, key, rayComplete, func(path string) error {
		what := fmt.Sprintf("installing %s from PyPI (%s the first time)", rayRequirement, rayFirst)
		return say.during(what, func() error {
			if err := os.RemoveAll(home); err != nil {
				return fmt.Errorf("remove an unfinished Ray environment: %w", err)
			}
			if _, err := run(ctx, python, "-m", "venv", home); err != nil {
				return err
			}
			if _, err := run(ctx, filepath.Join(home, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", rayRequirement); err != nil {
				return err
			}
			return writeFile(path, []byte(rayRequirement))
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
