package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

// Between these lines of benchmarks.md stands what a run writes: how soon scalers
// act, and what they lead to in whole workloads.
const (
	paceBegin     = "<!-- compared: begin (make compare writes this part) -->"
	paceEnd       = "<!-- compared: end -->"
	outcomesBegin = "<!-- compared outcomes: begin (make compare writes this part) -->"
	outcomesEnd   = "<!-- compared outcomes: end -->"
)

// results are the figures of all rounds.
type results struct {
	machine tables.Machine
	rounds  int
	scripts []string
	modes   []scaling.Mode
	policy  string // "" for none
	of      map[scaling.Mode][]figures
}

// row is a figure of a script to be told, and the goal for Rayfit's if there is one.
type row struct {
	script, what, unit string
	of                 func(figures) float64
	goal               goal
}

// goal is what a figure of Rayfit is to be at the most, in the modes for which there is one.
type goal struct {
	most  float64
	modes []scaling.Mode
}

// rayfit are the modes in which Rayfit scales.
var rayfit = []scaling.Mode{scaling.Central, scaling.Sidecar}

// missed says whether the goal is for a mode and a figure of it is not within it.
func (g goal) missed(mode scaling.Mode, value float64) bool {
	return slices.Contains(g.modes, mode) && !(value <= g.most)
}

// text is the goal as the table tells it, nothing where there is none.
func (g goal) text(unit string) string {
	if len(g.modes) == 0 {
		return ""
	}
	text := strings.TrimSpace(fmt.Sprintf("at most %g %s", g.most, unit))
	if len(g.modes) < len(rayfit) {
		text = string(g.modes[0]) + " " + text
	}
	return text
}

func rows() []row {
	all := []row{}
	for i, b := range bursts {
		var atOnce goal
		if b.held {
			atOnce = goal{1, rayfit}
		}
		all = append(all,
			row{bursting, b.what + ": asked for", "s", func(f figures) float64 { return f.asked[i] }, atOnce},
			row{bursting, b.what + ": the last one is made", "s", func(f figures) float64 { return f.last[i] }, goal{}},
			row{bursting, b.what + ": patches", "", func(f figures) float64 { return f.patches[i] }, atOnce})
	}
	return append(all,
		row{growing, "growing in place: Kubernetes has grown the pod", "s", func(f figures) float64 { return f.grown }, goal{}},
		row{growing, "growing in place: two tasks of three run", "s", func(f figures) float64 { return f.growth[1] }, goal{}},
		row{growing, "growing in place: all three run", "s", func(f figures) float64 { return f.growth[2] }, goal{2.5, rayfit}},
		row{bursting, "requests to the API server at rest, a minute: about the cluster", "", func(f figures) float64 { return f.idleCalls }, goal{0, []scaling.Mode{scaling.Central}}},
		row{bursting, "the same: of the process, however many clusters it has", "", func(f figures) float64 { return f.ownCalls }, goal{}},
		row{bursting, "memory (RSS)", "MiB", func(f figures) float64 { return f.memory }, goal{15, []scaling.Mode{scaling.Sidecar}}},
	)
}

// pace is the table of how soon scalers act, only its head without the scripts for it.
func (r results) pace() tables.Table {
	table := tables.Table{append(append([]string{""}, r.titles()...), "goal")}
	for _, row := range rows() {
		if !slices.Contains(r.scripts, row.script) {
			continue
		}
		cells := []string{row.what}
		for _, mode := range r.modes {
			cells = append(cells, r.cell(row, mode))
		}
		table = append(table, append(cells, row.goal.text(row.unit)))
	}
	return table
}

func (r results) titles() []string {
	var titles []string
	for _, mode := range r.modes {
		titles = append(titles, map[scaling.Mode]string{
			scaling.Ray: "Ray's autoscaler", scaling.Central: "Rayfit, central", scaling.Sidecar: "Rayfit, sidecar",
		}[mode])
	}
	return titles
}

func (r results) cell(row row, mode scaling.Mode) string {
	middle := r.median(mode, row.of)
	text := fmt.Sprintf("%.0f", middle)
	if row.unit != "" {
		text = tables.Amount(middle) + " " + row.unit
	}
	if row.goal.missed(mode, middle) {
		text += ", missed"
	}
	return text
}

func (r results) median(mode scaling.Mode, of func(figures) float64) float64 {
	var values []float64
	for _, f := range r.of[mode] {
		values = append(values, of(f))
	}
	return tables.Median(values)
}

// outcome is the median of each figure of a workload.
func (r results) outcome(mode scaling.Mode, name string) outcome {
	of := func(figure func(outcome) float64) float64 {
		return r.median(mode, func(f figures) float64 { return figure(f.outcomes[name]) })
	}
	// What was harmed in any round counts.
	most := func(figure func(outcome) float64) float64 {
		found := 0.0
		for _, f := range r.of[mode] {
			found = max(found, figure(f.outcomes[name]))
		}
		return found
	}
	return outcome{
		wait:       of(func(o outcome) float64 { return o.wait }),
		later:      of(func(o outcome) float64 { return o.later }),
		cpuSeconds: of(func(o outcome) float64 { return o.cpuSeconds }),
		made:       of(func(o outcome) float64 { return o.made }),
		retried:    most(func(o outcome) float64 { return o.retried }),
		failed:     most(func(o outcome) float64 { return o.failed }),
		restarted:  most(func(o outcome) float64 { return o.restarted }),
	}
}

// outcomes is the table of what scalers lead to, with what is worse than with Ray marked.
func (r results) outcomes() tables.Table {
	table := tables.Table{append([]string{""}, r.titles()...)}
	for _, w := range workloads {
		if !slices.Contains(r.scripts, w.name) {
			continue
		}
		ray := r.outcome(scaling.Ray, w.name)
		add := func(what string, of func(outcome) float64, text func(float64) string, compared bool) {
			cells := []string{what}
			for _, mode := range r.modes {
				value := of(r.outcome(mode, w.name))
				cell := text(value)
				if compared && mode != scaling.Ray && r.modes[0] == scaling.Ray {
					cell += " " + against(value, of(ray))
				}
				cells = append(cells, cell)
			}
			table = append(table, cells)
		}
		seconds := func(value float64) string { return tables.Amount(value) + " s" }
		count := func(value float64) string { return fmt.Sprintf("%.0f", value) }
		hours := func(value float64) string { return fmt.Sprintf("%.3f", value) }
		add(w.what+": mean wait", func(o outcome) float64 { return o.wait }, seconds, true)
		if w.acts[len(w.acts)-1].at > w.acts[0].at {
			add("the same: mean wait after the first time", func(o outcome) float64 { return o.later }, seconds, true)
		}
		add("the same: CPU-hours of the workers", func(o outcome) float64 { return o.cpuSeconds / 3600 }, hours, true)
		add("the same: tasks retried or failed", func(o outcome) float64 { return o.retried + o.failed }, count, false)
		add("the same: pods restarted", func(o outcome) float64 { return o.restarted }, count, false)
		add("the same: workers made", func(o outcome) float64 { return o.made }, count, false)
	}
	return append(table, r.writes()...)
}

// writes are the rows of how many requests all workloads together led to that change something.
func (r results) writes() tables.Table {
	var objects []string
	for _, mode := range r.modes {
		for _, f := range r.of[mode] {
			for object := range f.writes {
				objects = append(objects, object)
			}
		}
	}
	slices.Sort(objects)
	var rows tables.Table
	row := func(what string, of func(figures) float64) {
		cells := []string{what}
		for _, mode := range r.modes {
			cell := fmt.Sprintf("%.0f", r.median(mode, of))
			if (what == allWrites || what == everybody) && mode != scaling.Ray && r.modes[0] == scaling.Ray {
				cell += " " + against(r.median(mode, of), r.median(scaling.Ray, of))
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	if len(objects) == 0 {
		return nil
	}
	row(everybody, func(f figures) float64 { return f.ofAll })
	row(allWrites, figures.allWrites)
	for _, object := range slices.Compact(objects) {
		row("of these: "+object, func(f figures) float64 { return f.writes[object] })
	}
	return rows
}

// allWrites is how the table names the sum.
const allWrites = "all of them together: writes of the scaler to the API server"

// everybody is how it names the sum of all who write.
const everybody = "all of them together: writes of everybody to the API server"

func (f figures) allWrites() float64 { return sum(f.writes) }

func sum(of map[string]float64) (all float64) {
	for _, count := range of {
		all += count
	}
	return all
}

// against tells a figure as a multiple of Ray's.
func against(ours, ray float64) string {
	times := ratio(ours, ray)
	if times > worse {
		return fmt.Sprintf("(%.2f, worse)", times)
	}
	return fmt.Sprintf("(%.2f)", times)
}

// goals says for each workload and mode of Rayfit whether the goal is reached, a line each.
func (r results) goals() []string {
	var lines []string
	for _, w := range workloads {
		if !slices.Contains(r.scripts, w.name) || r.modes[0] != scaling.Ray {
			continue
		}
		ray := r.outcome(scaling.Ray, w.name)
		for _, mode := range r.modes[1:] {
			v := judge(w.name, ray, r.outcome(mode, w.name))
			reached := "reached"
			if !v.met {
				reached = "not reached"
			}
			lines = append(lines, fmt.Sprintf("%s, %s: %s: %s", w.name, mode, reached, v.why))
		}
	}
	return lines
}

// told is everything for a terminal, of those scalers that have had a turn.
func (r results) told() string {
	r.modes = slices.DeleteFunc(slices.Clone(r.modes), func(mode scaling.Mode) bool { return len(r.of[mode]) == 0 })
	if len(r.modes) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s; median of %d rounds\n", r.machine, r.rounds)
	if r.policy != "" {
		fmt.Fprintf(&text, "Rayfit has this policy:\n%s", r.policy)
	}
	for _, table := range []tables.Table{r.pace(), r.outcomes()} {
		if len(table) > 1 {
			fmt.Fprintf(&text, "\n%s", table.Aligned())
		}
	}
	if goals := r.goals(); len(goals) > 0 {
		fmt.Fprintf(&text, "\nGoal:\n%s\n", strings.Join(goals, "\n"))
	}
	return text.String()
}

// write brings those parts of benchmarks.md up to date of which all scripts were run.
func (r results) write(folder string) error {
	page := filepath.Join(folder, "benchmarks.md")
	from := fmt.Sprintf("%s. Median of rounds: %d.\n\n", r.machine, r.rounds)
	if slices.Contains(r.scripts, bursting) {
		if err := tables.Write(page, paceBegin, paceEnd, from+r.pace().Markdown()); err != nil {
			return err
		}
	}
	if slices.Contains(r.scripts, gapped) {
		goals := "Whether the goal is reached:\n\n- " + strings.Join(r.goals(), "\n- ") + "\n"
		return tables.Write(page, outcomesBegin, outcomesEnd, from+r.outcomes().Markdown()+"\n"+goals)
	}
	return nil
}
