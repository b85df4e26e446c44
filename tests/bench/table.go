package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// table is a head and rows of as many cells.
type table [][]string

func (r results) goalTable() table {
	rows := table{{"", "KubeRay", "Rayfit", "goal", "reached"}}
	for _, g := range r.goals() {
		reached := "yes"
		switch {
		case g.at == "":
			reached = ""
		case !g.reached():
			reached = "no"
		}
		rows = append(rows, []string{g.what, amount(g.theirs) + " " + g.unit, amount(g.ours) + " " + g.unit, g.bound(), reached})
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

func (r results) caseTable() table {
	rows := table{{"CPU of one request", "KubeRay", "Rayfit /validate", "ratio", "Rayfit /mutate", "KubeRay, per second", "Rayfit, per second", "ratio"}}
	for _, c := range r.rows() {
		rows = append(rows, []string{
			c.review, amount(c.theirs) + " µs", amount(c.validate) + " µs", ratio(c.theirs, c.validate), amount(c.mutate) + " µs",
			amount(c.theirsPerSecond), amount(c.oursPerSecond), ratio(c.oursPerSecond, c.theirsPerSecond),
		})
	}
	return rows
}

// amount has three digits or all before the point: more are not repeatable.
func amount(value float64) string {
	switch {
	case math.IsNaN(value):
		return "?"
	case value < 10:
		return fmt.Sprintf("%.2f", value)
	case value < 100:
		return fmt.Sprintf("%.1f", value)
	default:
		return thousands(fmt.Sprintf("%.0f", value))
	}
}

func thousands(digits string) string {
	if len(digits) <= 3 {
		return digits
	}
	return thousands(digits[:len(digits)-3]) + "," + digits[len(digits)-3:]
}

func ratio(a, b float64) string { return fmt.Sprintf("%.1f", a/b) }

func markdown(t table) string {
	var text strings.Builder
	for n, row := range t {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if n == 0 {
			fmt.Fprintf(&text, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	return text.String()
}

func aligned(t table) string {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for column, cell := range row {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range t {
		for column, cell := range row {
			blank := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column == 0 {
				text.WriteString(cell + blank)
			} else {
				text.WriteString("  " + blank + cell)
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}
