package walk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
)

// marked is a comment that asks for something, and the indented block below it:
// `<!-- run -->` for commands that all succeed, `<!-- run TEXT -->` for some that
// print a text.
var marked = regexp.MustCompile(`(?m)^ *<!-- (until|run)(?: (.+))? -->\n((?:\n| {4}.*\n)*)`)

// TestMarkedBlocksRun gives the marked blocks of all other pages to a shell, page
// by page, in a cluster in which those of the README install Rayfit.
// tests/core/targets.rs finds blocks without a mark.
func TestMarkedBlocksRun(t *testing.T) {
	const root = "../../../"
	pages, err := filepath.Glob(root + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWalk(t)
	for _, name := range []string{"examples", "manifests"} {
		if err := os.CopyFS(filepath.Join(w.dir, name), os.DirFS(root+name)); err != nil {
			t.Fatal(err)
		}
	}
	w.must(t, "sed 's/: notebook/: demo/; s/: research/: default/' examples/good.yaml | kubectl apply -f -")
	ran := 0
	for _, page := range append([]string{root + "README.md"}, pages...) {
		name := filepath.Base(page)
		if strings.HasPrefix(name, "rollout") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range marked.FindAllStringSubmatch(string(text), -1) {
			commands, wanted := "set -euo pipefail\n"+block[3], block[2]
			if block[1] == "until" {
				commands, wanted = block[2], ""
			}
			ran++
			err := lab.Eventually(t.Context(), patience, name+":\n"+commands, func() error {
				said, err := w.run(t.Context(), commands)
				if wanted != "" && strings.Contains(said, wanted) || wanted == "" && err == nil {
					return nil
				}
				return fmt.Errorf("%v, and not %q: %s", err, wanted, said)
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	if ran < 25 {
		t.Errorf("only %d blocks are marked", ran)
	}
}
