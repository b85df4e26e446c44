package main

import (
	"fmt"
	"math"
	"strings"
)

// worse is from which ratio to Ray's on a figure is worse.
const worse = 1.05

// verdict is whether an outcome reaches the goal, and why (not).
type verdict struct {
	met bool
	why string
}

// judge holds an outcome of Rayfit against Ray's of the same workload. Nothing may
// be harmed and neither wait nor CPU-hours may be worse. Bursts with gaps must be much
// better besides: a fifth of the wait at no more CPU-hours, or half of the CPU-hours
// at no more wait.
func judge(name string, ray, ours outcome) verdict {
	var misses []string
	miss := func(format string, args ...any) { misses = append(misses, fmt.Sprintf(format, args...)) }
	if harmed := ours.retried + ours.failed; harmed > 0 {
		miss("%.0f tasks harmed", harmed)
	}
	if ours.restarted > 0 {
		miss("%.0f pods restarted", ours.restarted)
	}
	wait, cost := ratio(ours.wait, ray.wait), ratio(ours.cpuSeconds, ray.cpuSeconds)
	if wait > worse {
		miss("the wait is worse")
	}
	if cost > worse {
		miss("the CPU-hours are worse")
	}
	if name == gapped && !muchBetter(wait, cost) {
		if later := ratio(ours.later, ray.later); muchBetter(later, cost) {
			miss("a fifth of the wait only after a gap (%.2f)", later)
		} else {
			miss("neither a fifth of the wait (after a gap %.2f) nor half of the CPU-hours", later)
		}
	}
	why := fmt.Sprintf("%.2f of Ray's wait, %.2f of its CPU-hours", wait, cost)
	if len(misses) > 0 {
		why += ": " + strings.Join(misses, ", ")
	}
	return verdict{len(misses) == 0, why}
}

func muchBetter(wait, cost float64) bool {
	return wait <= 0.2 && cost <= 1 || cost <= 0.5 && wait <= 1
}

// ratio is 1 of nothing to nothing.
func ratio(ours, ray float64) float64 {
	switch {
	case ray != 0:
		return ours / ray
	case ours == 0:
		return 1
	default:
		return math.Inf(1)
	}
}
