package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/tables"
)

// Between these lines of benchmarks.md stands what a run writes.
const (
	begin = "<!-- measured: begin (make bench writes this part) -->"
	end   = "<!-- measured: end -->"
)

func (r results) print(out io.Writer) {
	fmt.Fprintf(out, "%s; median of %d rounds\n\n%s\n%s\n%s", r.machine, r.rounds, r.goalTable().Aligned(), r.caseTable().Aligned(), r.floorTable().Aligned())
}

// write brings benchmarks.md and its plots in the folder up to date.
func (r results) write(folder string) error {
	path := filepath.Join(folder, "benchmarks.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page to write into: %w", err)
	}
	page, err := tables.Replaced(string(raw), begin, end, r.measured())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	files := map[string]string{path: page}
	for name, plot := range r.plots() {
		files[filepath.Join(folder, name)] = plot
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}

func (r results) measured() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s. KubeRay operator %s. Median of %d rounds.\n\n", r.machine, lab.KubeRayVersion, r.rounds)
	fmt.Fprintf(&text, "%s\n", r.goalTable().Markdown())
	text.WriteString("![CPU time of one request](benchmarks-cpu.svg)\n\n")
	text.WriteString("![Memory](benchmarks-memory.svg)\n\n")
	fmt.Fprintf(&text, "%s\n", r.caseTable().Markdown())
	fmt.Fprintf(&text, "Beside the floor:\n\n%s", r.floorTable().Markdown())
	return text.String()
}
