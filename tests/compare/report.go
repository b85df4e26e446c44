package main

import (
	"fmt"

	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

// Between these lines of benchmarks.md stands what a run writes.
const (
	begin = "<!-- compared: begin (make compare writes this part) -->"
	end   = "<!-- compared: end -->"
)

// results are the figures of all rounds.
type results struct {
	machine tables.Machine
	rounds  int
	of      map[scaling.Mode][]figures
}

// row is a figure to be told, and the goal for Rayfit's if there is one.
type row struct {
	what, unit string
	of         func(figures) float64
	goal       string
}

func rows() []row {
	all := []row{}
	for i, b := range bursts {
		all = append(all,
			row{b.what + ": asked for", "s", func(f figures) float64 { return f.asked[i] }, b.goal},
			row{b.what + ": the last one is made", "s", func(f figures) float64 { return f.last[i] }, ""},
			row{b.what + ": patches", "", func(f figures) float64 { return f.patches[i] }, ""})
	}
	return append(all,
		row{"growing in place: Kubernetes has grown the pod", "s", func(f figures) float64 { return f.grown }, ""},
		row{"growing in place: two tasks of three run", "s", func(f figures) float64 { return f.growth[1] }, ""},
		row{"growing in place: all three run", "s", func(f figures) float64 { return f.growth[2] }, "at most 2.5 s"},
		row{"bursts of 8 tasks, 120 s apart: mean wait of the first", "s", func(f figures) float64 { return f.waited[0] }, ""},
		row{"the same: mean wait of the others", "s", func(f figures) float64 { return later(f.waited) }, "a fifth of Ray's"},
		row{"the same: CPU-seconds of the workers", "", func(f figures) float64 { return f.cpuSeconds }, ""},
		row{"the same: workers made", "", func(f figures) float64 { return f.made }, ""},
		row{"the same: tasks lost", "", func(f figures) float64 { return f.harmed }, "none"},
		row{"requests to the API server at rest, a minute: about the cluster", "", func(f figures) float64 { return f.idleCalls }, "central none"},
		row{"the same: of the process, however many clusters it has", "", func(f figures) float64 { return f.ownCalls }, ""},
		row{"memory (RSS)", "MiB", func(f figures) float64 { return f.memory }, "sidecar at most 15 MiB"},
	)
}

// later is the mean of all but the first.
func later(waited [waves]float64) float64 {
	sum := 0.0
	for _, wait := range waited[1:] {
		sum += wait
	}
	return sum / (waves - 1)
}

func (r results) table() tables.Table {
	table := tables.Table{{"", "Ray's autoscaler", "Rayfit, central", "Rayfit, sidecar", "goal"}}
	for _, row := range rows() {
		cells := []string{row.what}
		for _, mode := range modes {
			cells = append(cells, r.cell(row, mode))
		}
		table = append(table, append(cells, row.goal))
	}
	return table
}

func (r results) cell(row row, mode scaling.Mode) string {
	var values []float64
	for _, f := range r.of[mode] {
		values = append(values, row.of(f))
	}
	if len(values) == 0 {
		return ""
	}
	middle := tables.Median(values)
	if row.unit == "" {
		return fmt.Sprintf("%.0f", middle)
	}
	return tables.Amount(middle) + " " + row.unit
}

func (r results) told() string {
	return fmt.Sprintf("%s; median of %d rounds\n\n%s", r.machine, r.rounds, r.table().Aligned())
}

func (r results) page() string {
	return fmt.Sprintf("%s. Median of %d rounds.\n\n%s", r.machine, r.rounds, r.table().Markdown())
}
