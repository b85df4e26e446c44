// Package tables tells what a benchmark has measured: the machine, tables for a
// terminal and for a page, and the part of a page that a run writes.
package tables

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Table is a head and rows of as many cells.
type Table [][]string

// Amount has three digits or all before the point: more are not repeatable.
func Amount(value float64) string {
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

// Ratio is how often b is in a.
func Ratio(a, b float64) string { return fmt.Sprintf("%.1f", a/b) }

// Markdown is the table for a page.
func (t Table) Markdown() string {
	var text strings.Builder
	for n, row := range t {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if n == 0 {
			fmt.Fprintf(&text, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	return text.String()
}

// Aligned is the table for a terminal.
func (t Table) Aligned() string {
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
