package tables

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A copy of a repository in which there is a file beside the script and a page.
func copied(t *testing.T) (folder string, git func(...string)) {
	t.Helper()
	script, err := os.ReadFile("../../scripts/commit.sh")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for path, text := range map[string]string{"scripts/commit.sh": string(script), "docs/page.md": "a", "src": "a"} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder, func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.example", "-C", folder}, args...)...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
	}
}

func TestCommitIsNamedWithWhatWasChanged(t *testing.T) {
	folder, git := copied(t)
	inner := filepath.Join(folder, "docs")
	t.Chdir(inner)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(folder))
	says := func(pattern string) {
		t.Helper()
		said, err := Commit()
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile("^" + pattern + "$").MatchString(said) {
			t.Errorf("got %q, want %s", said, pattern)
		}
	}
	change := func(path string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, path), []byte("b"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("an unknown commit: .*")
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "one")
	says("commit `[0-9a-f]{8}`")
	change("docs/page.md")
	says("commit `[0-9a-f]{8}`")
	change("src")
	says("commit `[0-9a-f]{8}` with changes")
}

func TestCommitNeedsTheRepository(t *testing.T) {
	t.Chdir("/")
	if said, err := Commit(); err == nil || !strings.Contains(err.Error(), "in the repository") {
		t.Errorf("got %q, %v", said, err)
	}
}
