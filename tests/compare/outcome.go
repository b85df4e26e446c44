package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// outcome is what a scaler has led to in a workload. All of it is better the less it is.
type outcome struct {
	wait       float64 // the mean of all tasks, in seconds
	later      float64 // the mean of those that were asked for later than the first
	cpuSeconds float64 // the CPU limits of the workers over time
	retried    float64 // attempts at tasks beyond the first of each
	failed     float64 // tasks that have not ended well
	restarted  float64 // containers of workers that were started again
	made       float64 // workers
}

func (o outcome) String() string {
	return fmt.Sprintf("mean wait %.2f s (later %.2f s), %.0f CPU-seconds, %.0f retried, %.0f failed, %.0f restarted, %.0f workers made",
		o.wait, o.later, o.cpuSeconds, o.retried, o.failed, o.restarted, o.made)
}

// fate is what has become of the tasks of an act.
type fate struct {
	waits           []float64 // seconds, of each task
	retried, failed float64
	// again is whether the workload had asked for something before.
	again bool
}

// checked is the fate of tasks by how they checked in: with their number, under
// another name for each attempt. One that has not begun has waited until now.
func checked(asked, now time.Time, count int, begun, ended []scaling.Task) fate {
	var f fate
	first := map[int]time.Time{}
	for _, attempt := range begun {
		number := numberOf(attempt.Name)
		if before, again := first[number]; !again {
			first[number] = attempt.Began
		} else {
			f.retried++
			if attempt.Began.Before(before) {
				first[number] = attempt.Began
			}
		}
	}
	well := map[int]bool{}
	for _, attempt := range ended {
		well[numberOf(attempt.Name)] = true
	}
	for number := range count {
		moment, there := first[number]
		if !there {
			moment = now
		}
		f.waits = append(f.waits, moment.Sub(asked).Seconds())
		if !well[number] {
			f.failed++
		}
	}
	return f
}

// numberOf is the number of a task by the name of an attempt: batch/number/unique.
func numberOf(name string) int {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return -1
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return number
}

// answers is the fate of requests by how long those have waited that were answered,
// a JSON list. One that has no answer yet has failed.
func answers(said string, count int) (fate, error) {
	var f fate
	if err := json.Unmarshal([]byte(said), &f.waits); err != nil {
		return f, fmt.Errorf("read how long requests waited, %q: %w", said, err)
	}
	f.failed = float64(count - len(f.waits))
	return f, nil
}

// summed is the outcome of a workload's acts, without its pods.
func summed(acts []fate) outcome {
	var o outcome
	var all, later []float64
	for _, f := range acts {
		all = append(all, f.waits...)
		if f.again {
			later = append(later, f.waits...)
		}
		o.retried += f.retried
		o.failed += f.failed
	}
	o.wait, o.later = mean(all), mean(later)
	return o
}

// mean is 0 of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / max(1, float64(len(values)))
}

// meter integrates what it sees over time: what it saw is so until it sees again.
type meter struct {
	last time.Time
	rate float64
	sum  float64 // rate times seconds
}

func (m *meter) see(now time.Time, rate float64) {
	if !m.last.IsZero() {
		m.sum += m.rate * now.Sub(m.last).Seconds()
	}
	m.last, m.rate = now, rate
}

// limits is the sum of the CPU limits of a pod's containers.
func limits(pod rig.Object) float64 {
	sum := 0.0
	containers, _ := pod.Get("spec.containers").([]any)
	for _, container := range containers {
		container, _ := container.(map[string]any)
		text, _ := rig.Object(container).Get("resources.limits.cpu").(string)
		sum += cpus(text)
	}
	return sum
}

// cpus is an amount of CPUs as Kubernetes stores it: 2 or 1500m.
func cpus(text string) float64 {
	text, milli := strings.CutSuffix(text, "m")
	amount, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	if milli {
		return amount / 1000
	}
	return amount
}

// restarts is how often containers of a pod were started again.
func restarts(pod rig.Object) float64 {
	sum := 0.0
	statuses, _ := pod.Get("status.containerStatuses").([]any)
	for _, status := range statuses {
		status, _ := status.(map[string]any)
		count, _ := status["restartCount"].(float64)
		sum += count
	}
	return sum
}
