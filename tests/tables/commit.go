package tables

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Commit is from which commit figures are that are measured now, as pages say it.
func Commit() (string, error) {
	script, err := scriptAbove("scripts/commit.sh")
	if err != nil {
		return "", err
	}
	said, err := exec.Command(script).Output()
	if err != nil {
		return "", fmt.Errorf("find out which commit is measured: %w", err)
	}
	return strings.TrimSpace(string(said)), nil
}

// scriptAbove is a file of the repository, from whatever folder in it this runs in.
func scriptAbove(path string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		found := filepath.Join(folder, path)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("there is no %s in any folder above: run this in the repository", path)
		}
		folder = above
	}
}
