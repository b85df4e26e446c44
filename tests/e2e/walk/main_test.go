// Package walk_test walks through docs/rollout.md in the lab: each command that
// the page shows is run, in its order, and must print what the page says. `make
// walk` writes the page anew with what is printed, and its translation too. Of
// the other pages it runs the blocks that are marked.
//
// The page is the script. A block marked `console` holds commands, each after
// `$ `, and what they print. A comment `<!-- file NAME -->` makes a file of the
// block that follows; `<!-- until COMMAND -->` waits until a command succeeds.
// The folder testdata is where the walk begins.
package walk_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/tables"
)

const page = "../../../docs/rollout.md"

// patience is how long a command may fail before it fails for good.
const patience = 90 * time.Second

func TestThePageSaysWhatHappens(t *testing.T) {
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := parse(string(written))
	commands := 0
	for _, p := range parts {
		commands += len(p.commands)
	}
	if commands < 10 {
		t.Fatalf("only %d commands in %s", commands, page)
	}
	w := newWalk(t)
	w.must(t, "kubectl apply -f stored.yaml")
	for i := range parts {
		w.take(t, &parts[i])
	}
	if file := os.Getenv("RAYFIT_WALK"); file != "" {
		write(t, file, stamped(t, render(parts)))
		file = strings.TrimSuffix(file, ".md") + ".zh-CN.md"
		translation, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, translated(string(translation), parts))
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stamped is the page with the commit that it is written at.
func stamped(t *testing.T, page string) string {
	t.Helper()
	commit, err := tables.Commit()
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("has written it at commit `[0-9a-f]+`( with changes)?")
	if found := sentence.FindAllString(page, -1); len(found) != 1 {
		t.Fatalf("the page says %d times from which commit it is", len(found))
	}
	return sentence.ReplaceAllLiteralString(page, "has written it at "+commit)
}

func TestThePageSaysFromWhichCommitItIs(t *testing.T) {
	commit, err := tables.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if got := stamped(t, "a has written it at commit `0123abcd` with changes)\n"); got != "a has written it at "+commit+")\n" {
		t.Errorf("got %q", got)
	}
}

// walk is a cluster, and a shell for it.
type walk struct {
	lab *lab.Lab
	dir string
	env []string
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := labtest.Start(t, lab.Options{Nodes: 1, Cores: 32, Memory: "64Gi", RayfitBinary: binary})
	w := &walk{lab: l, dir: filepath.Join(dir, "home")}
	bin := filepath.Join(dir, "bin")
	if err := os.CopyFS(w.dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "rayfit")); err != nil {
		t.Fatal(err)
	}
	kubectl := l.KubectlCommand(t.Context())
	w.env = append(kubectl.Env, "PATH="+bin+":"+filepath.Join(l.Dir(), "bin")+":"+os.Getenv("PATH"))
	return w
}

// must gives a command to a shell, and fails with it.
func (w *walk) must(t *testing.T, command string) {
	t.Helper()
	if said, err := w.run(t.Context(), command); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// run gives a command to a shell and returns all that it prints.
func (w *walk) run(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = w.dir, w.env
	said, err := cmd.CombinedOutput()
	return strings.TrimRight(string(said), "\n"), err
}

// take does what a part of the page asks for.
func (w *walk) take(t *testing.T, p *part) {
	t.Helper()
	if p.file != "" {
		if err := os.WriteFile(filepath.Join(w.dir, p.file), []byte(p.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if p.until != "" {
		err := lab.Eventually(t.Context(), patience, p.until, func() error {
			said, err := w.run(t.Context(), p.until)
			if err != nil {
				return fmt.Errorf("%w: %s", err, said)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.commands {
		c := &p.commands[i]
		// That a command fails is part of what is shown.
		said, _ := w.run(t.Context(), c.line)
		if masked(said) != masked(c.output) && os.Getenv("RAYFIT_WALK") == "" {
			t.Errorf("$ %s\nprints:\n%s\nand the page says:\n%s\n`make walk` writes it anew", c.line, said, c.output)
		}
		c.output = said
	}
}
