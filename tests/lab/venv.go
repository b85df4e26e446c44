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

// rayEnvironment returns the bin folder of a virtual environment with Ray.
//
// Such an environment has its own path in its scripts and cannot be renamed
// into place as binaries are; so a file beside it says that it is complete.
func rayEnvironment(ctx context.Context, say *progress) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("Ray in the lab needs python3 with venv and pip on the PATH: install it: %w", err)
	}
	version, err := run(ctx, python, "-c", "import sys; print(sys.version_info[:3], sys.prefix)")
	if err != nil {
		return "", err
	}
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	key := textKey(rayRequirement, version)
	home := filepath.Join(root, key, "ray")
	_, err = cached(ctx, say, key, "ray.complete", func(path string) error {
		what := fmt.Sprintf("installing %s from PyPI (about 2 min the first time)", rayRequirement)
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
			return writeFile(path, []byte(version))
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
