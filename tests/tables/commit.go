package tables

import (
	"fmt"
	"os/exec"
	"strings"
)

// Commit is from which commit figures are that are measured now, as pages say it.
func Commit() (string, error) {
	said, err := exec.Command("sh", "-c", `exec "$(git rev-parse --show-toplevel)/scripts/commit.sh"`).Output()
	if err != nil {
		return "", fmt.Errorf("find out which commit is measured: %w", err)
	}
	return strings.TrimSpace(string(said)), nil
}
