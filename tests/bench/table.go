package main

import "rayfit.dev/rayfit/tests/tables"

func (r results) goalTable() tables.Table {
	rows := tables.Table{{"", "KubeRay", "Rayfit", "goal", "reached"}}
	for _, g := range r.goals() {
		reached := "yes"
		switch {
		case g.at == "":
			reached = ""
		case !g.reached():
			reached = "no"
		}
		rows = append(rows, []string{g.what, tables.Amount(g.theirs) + " " + g.unit, tables.Amount(g.ours) + " " + g.unit, g.bound(), reached})
	}
	return rows
}

func (g goal) bound() string {
	switch {
	case g.at == "":
		return ""
	case g.isAtMost:
		return "at most " + g.at
	default:
		return "at least " + g.at
	}
}

func (r results) caseTable() tables.Table {
	rows := tables.Table{{"CPU of one request", "KubeRay", "Rayfit /validate", "ratio", "Rayfit /mutate", "KubeRay, per second", "Rayfit, per second", "ratio"}}
	for _, c := range append(r.rows(), r.row(apart)) {
		rows = append(rows, []string{
			c.review, tables.Amount(c.theirs) + " µs", tables.Amount(c.validate) + " µs", tables.Ratio(c.theirs, c.validate), tables.Amount(c.mutate) + " µs",
			tables.Amount(c.theirsPerSecond), tables.Amount(c.oursPerSecond), tables.Ratio(c.oursPerSecond, c.theirsPerSecond),
		})
	}
	return rows
}

// floorTable is how far the webhooks are from what they cannot do without.
func (r results) floorTable() tables.Table {
	rows := tables.Table{{"CPU of one request", "TLS and HTTP", "and one walk", "Rayfit /validate", "of that", "Rayfit /mutate", "of that", "goal"}}
	for _, c := range append(r.rows(), r.row(apart)) {
		rows = append(rows, []string{
			c.review, tables.Amount(c.read) + " µs", tables.Amount(c.walked) + " µs", tables.Amount(c.validate) + " µs", tables.Ratio(c.validate, c.walked),
			tables.Amount(c.mutate) + " µs", tables.Ratio(c.mutate, c.walked), "at most 1.5",
		})
	}
	return rows
}
