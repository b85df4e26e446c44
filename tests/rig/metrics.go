package rig

import (
	"strconv"
	"strings"
)

// Metrics are the samples of one scrape, by series as Prometheus' text format
// writes it: `name{label="value",...}`.
type Metrics map[string]float64

// ParseMetrics reads Prometheus' text format; comments and time stamps are
// passed over.
func ParseMetrics(text string) Metrics {
	samples := Metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndex(line, "}") + 1
		if end == 0 {
			end = strings.IndexByte(line, ' ')
		}
		if end <= 0 || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line[end:])
		if len(fields) == 0 {
			continue
		}
		if value, err := strconv.ParseFloat(fields[0], 64); err == nil {
			samples[line[:end]] = value
		}
	}
	return samples
}

// Sum adds up the series of a name that have all the labels, each written
// `label="value"`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	total := 0.0
	for series, value := range m {
		if m.matches(series, name, labels) {
			total += value
		}
	}
	return total
}

// Has says whether there is a series of a name.
func (m Metrics) Has(name string) bool {
	for series := range m {
		if m.matches(series, name, nil) {
			return true
		}
	}
	return false
}

func (m Metrics) matches(series, name string, labels []string) bool {
	found, rest, _ := strings.Cut(series, "{")
	if found != name {
		return false
	}
	for _, label := range labels {
		if !strings.Contains(","+rest, ","+label) {
			return false
		}
	}
	return true
}
