package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rayfit.dev/rayfit/tests/scaling"
)

// logs are the files from which can be understood why a scaler did what it did;
// none are written without a folder.
type logs struct {
	folder string
	told   strings.Builder // the fate of each act's tasks
}

// tasks keeps how long each task of an act waited.
func (l *logs) tasks(batch string, f fate) {
	fmt.Fprintf(&l.told, "%s: %.0f retried, %.0f failed, waited (s)", batch, f.retried, f.failed)
	for _, wait := range f.waits {
		fmt.Fprintf(&l.told, " %.2f", wait)
	}
	l.told.WriteString("\n")
}

// keep writes what was seen of a cluster, and what its scaler has said.
func (l *logs) keep(t *turn, c scaling.Cluster) error {
	if l.folder == "" {
		return nil
	}
	scaler := ""
	if t.controller != nil {
		scaler = t.controller.Log()
	} else if head, err := t.w.Head(c); err != nil {
		scaler = err.Error()
	} else if stdout, stderr, err := t.w.Lab.Kubectl("logs", "-n", t.w.Namespace, head.Name(), "-c", "autoscaler", "--tail=-1"); err != nil {
		scaler = fmt.Sprintf("%s\n%v", stderr, err)
	} else {
		scaler = stdout
	}
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	for name, content := range map[string]string{"scaler.log": scaler, "history.txt": t.w.History(), "tasks.txt": l.told.String()} {
		path := filepath.Join(l.folder, fmt.Sprintf("%s-%s", c.Name, name))
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("keep a log: %w", err)
		}
	}
	return nil
}
