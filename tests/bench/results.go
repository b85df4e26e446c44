package main

import (
	"cmp"
	"math"
	"slices"

	"rayfit.dev/rayfit/tests/tables"
)

const (
	ours   = "Rayfit"
	theirs = "KubeRay"
	floor  = "the floor"
)

// results are what a run found: the figures of each round, by contender.
type results struct {
	machine tables.Machine
	rounds  int
	of      map[string][]figures
}

// median of one figure over the rounds of a contender; NaN if it has none.
func (r results) median(name string, figure func(figures) float64) float64 {
	var values []float64
	for _, round := range r.of[name] {
		values = append(values, figure(round))
	}
	return tables.Median(values)
}

func (r results) cpu(name, path, review string) float64 {
	return r.median(name, func(f figures) float64 { return f.cases[path+" "+review].cpuMicros })
}

func (r results) perSecond(name, path, review string) float64 {
	return r.median(name, func(f figures) float64 { return f.cases[path+" "+review].perSecond })
}

// row is one review in all that was measured of it.
type row struct {
	review                         string
	theirs, validate, mutate       float64 // CPU time of one request, in microseconds
	read, walked                   float64 // the same of the floor
	theirsPerSecond, oursPerSecond float64
}

// rows are those of the reviews on connections that are kept, as API servers keep theirs.
func (r results) rows() []row {
	var rows []row
	for _, size := range sizes {
		for _, operation := range []string{" create", " update"} {
			rows = append(rows, r.row(size.name+operation))
		}
	}
	return rows
}

func (r results) row(review string) row {
	return row{
		review:          review,
		theirs:          r.cpu(theirs, theirPath, review),
		validate:        r.cpu(ours, "/validate", review),
		mutate:          r.cpu(ours, "/mutate", review),
		read:            r.cpu(floor, readPath, review),
		walked:          r.cpu(floor, walkPath, review),
		theirsPerSecond: r.perSecond(theirs, theirPath, review),
		oursPerSecond:   r.perSecond(ours, "/validate", review),
	}
}

// goal is a figure that Rayfit is to reach.
type goal struct {
	what     string
	unit     string
	theirs   float64
	ours     float64
	limit    float64
	at       string // how the limit reads
	isAtMost bool
}

func (g goal) reached() bool {
	if g.isAtMost {
		return g.ours <= g.limit
	}
	return g.ours >= g.limit
}

func (r results) goals() []goal {
	steadyOf := func(name string, figure func(steady) float64) float64 {
		return r.median(name, func(f figures) float64 { return figure(f.steady) })
	}
	ready := func(f figures) float64 { return f.readyMS }
	idle := func(f figures) float64 { return f.idleMiB }
	p50 := func(s steady) float64 { return s.p50MS }
	p99 := func(s steady) float64 { return s.p99MS }
	peak := func(s steady) float64 { return s.peakMiB }
	held := func(s steady) float64 { return s.perSecond }
	worst := slices.MaxFunc(r.rows(), func(a, b row) int { return cmp.Compare(a.validate/a.theirs, b.validate/b.theirs) })
	slowest := slices.MinFunc(r.rows(), func(a, b row) int {
		return cmp.Compare(a.oursPerSecond/a.theirsPerSecond, b.oursPerSecond/b.theirsPerSecond)
	})
	return []goal{
		{"CPU per request, worst case (" + worst.review + ")", "µs", worst.theirs, worst.validate, worst.theirs / 5, "a fifth of KubeRay's", true},
		{"throughput of one core, worst case (" + slowest.review + ")", "/s", slowest.theirsPerSecond, slowest.oursPerSecond, slowest.theirsPerSecond * 5, "5 times KubeRay's", false},
		{"answered per second of 1,000 asked, " + steadyReview, "/s", steadyOf(theirs, held), steadyOf(ours, held), 0.99 * steadyRate, "990 /s", false},
		{"p50 at that rate", "ms", steadyOf(theirs, p50), steadyOf(ours, p50), math.Inf(1), "", true},
		{"p99 at that rate", "ms", steadyOf(theirs, p99), steadyOf(ours, p99), 5, "5 ms", true},
		{"memory at rest (RSS)", "MiB", r.median(theirs, idle), r.median(ours, idle), 20, "20 MiB", true},
		{"memory at that rate, at most (RSS)", "MiB", steadyOf(theirs, peak), steadyOf(ours, peak), 40, "40 MiB", true},
		{"start to first answer", "ms", r.median(theirs, ready), r.median(ours, ready), 100, "100 ms", true},
	}
}
