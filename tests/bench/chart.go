package main

import (
	"fmt"
	"html"
	"strings"

	"rayfit.dev/rayfit/tests/tables"
)

// bar is one bar of a plot, in a group with others.
type bar struct {
	group  string
	series string
	value  float64
	label  string
}

// The two contenders' colours are told apart in any kind of sight, and on light
// and dark pages.
var colours = map[string]string{ours: "#0f766e", theirs: "#d97706"}

func (r results) plots() map[string]string {
	var cpu []bar
	for _, c := range r.rows() {
		cpu = append(cpu,
			bar{c.review, theirs, 1, tables.Amount(c.theirs) + " µs"},
			bar{c.review, ours, c.validate / c.theirs, tables.Amount(c.validate) + " µs"})
	}
	var memory []bar
	for _, g := range r.goals() {
		if g.unit == "MiB" {
			memory = append(memory,
				bar{g.what, theirs, g.theirs, tables.Amount(g.theirs) + " MiB"},
				bar{g.what, ours, g.ours, tables.Amount(g.ours) + " MiB"})
		}
	}
	return map[string]string{
		"benchmarks-cpu.svg":    plot("CPU time of one request, beside KubeRay's (validating webhook)", cpu),
		"benchmarks-memory.svg": plot("Memory of the process (RSS)", memory),
	}
}

// Lengths in a plot, in pixels.
const (
	width     = 760
	barLeft   = 250
	barWidth  = 400
	barHeight = 16
	groupGap  = 12
	headRoom  = 64
)

// plot draws horizontal bars with their figures beside them.
func plot(title string, bars []bar) string {
	longest := 0.0
	for _, b := range bars {
		longest = max(longest, b.value)
	}
	var body strings.Builder
	y, group := headRoom-groupGap, ""
	for _, b := range bars {
		if b.group != group {
			group = b.group
			y += groupGap
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", barLeft-10, y+barHeight+4, html.EscapeString(group))
		}
		length := barWidth * b.value / longest
		fmt.Fprintf(&body, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", barLeft, y, length, barHeight-2, colours[b.series])
		fmt.Fprintf(&body, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", barLeft+length+6, y+barHeight-4, html.EscapeString(b.label))
		y += barHeight
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12" role="img">
<title>%s</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<g fill="#1f2937">
<text x="10" y="22" font-size="15" font-weight="600">%s</text>
%s%s</g>
</svg>
`, width, y+groupGap, html.EscapeString(title), html.EscapeString(title), legend(), body.String())
}

func legend() string {
	var text strings.Builder
	for n, series := range []string{theirs, ours} {
		x := 10 + n*100
		fmt.Fprintf(&text, "<rect x=\"%d\" y=\"34\" width=\"12\" height=\"12\" fill=\"%s\"/>\n<text x=\"%d\" y=\"44\">%s</text>\n", x, colours[series], x+18, series)
	}
	return text.String()
}
