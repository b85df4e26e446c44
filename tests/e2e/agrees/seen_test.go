package agrees_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

// seen is what was seen to be done, from when the script began.
//
// Pods are called by their group, and by a number that they get when something is
// first told of one of them after it was made. So equal pods that were made
// together are called alike here and in the simulator, whichever has which name.
type seen struct {
	script script
	begin  time.Time
	events []event

	replicas map[string]string
	listed   map[string]bool
	pods     map[string]*podSeen // by uid
	names    map[string]string   // what pods are called, by their names
	count    map[string]int      // how many of a group are called something
	begun    map[string]time.Time
	ended    map[string]time.Time
}

type podSeen struct {
	wanted, actual string
	gone           bool
}

func newSeen(s script) *seen {
	return &seen{
		script: s, replicas: map[string]string{}, listed: map[string]bool{}, pods: map[string]*podSeen{}, names: map[string]string{},
		count: map[string]int{}, begun: map[string]time.Time{}, ended: map[string]time.Time{},
	}
}

// start takes in how things are when the script begins: that is no event, and pods of
// before are not counted.
func (s *seen) start(w *scaling.World, c scaling.Cluster, begin time.Time) {
	s.look(w, c)
	s.begin, s.events = begin, nil
	clear(s.names)
	clear(s.count)
}

// look adds what was done since the last look.
func (s *seen) look(w *scaling.World, c scaling.Cluster) {
	known := len(s.events)
	s.lookAtCluster(w, c)
	s.lookAtPods(w, c)
	s.lookAtTasks(w, c)
	slices.SortStableFunc(s.events[known:], func(a, b event) int {
		return int((a.at - b.at) * 1000)
	})
}

func (s *seen) did(at time.Time, format string, args ...any) {
	s.events = append(s.events, event{at.Sub(s.begin).Seconds(), fmt.Sprintf(format, args...)})
}

func (s *seen) lookAtCluster(w *scaling.World, c scaling.Cluster) {
	object, err := w.RayCluster(c)
	if err != nil {
		return
	}
	groups, _ := object.Get("spec.workerGroupSpecs").([]any)
	for i := range groups {
		at := fmt.Sprintf("spec.workerGroupSpecs[%d].", i)
		name := fmt.Sprint(object.Get(at + "groupName"))
		if now := fmt.Sprint(object.Get(at + "replicas")); now != s.replicas[name] {
			s.replicas[name] = now
			s.did(object.Last, "replicas %s %s", name, now)
		}
		listed, _ := object.Get(at + "scaleStrategy.workersToDelete").([]any)
		for _, pod := range listed {
			if pod := fmt.Sprint(pod); !s.listed[pod] {
				s.listed[pod] = true
				s.did(object.Last, "lists %s", s.called(name, pod))
			}
		}
	}
}

func (s *seen) lookAtPods(w *scaling.World, c scaling.Cluster) {
	for _, pod := range w.EverWorkers(c, "") {
		group := fmt.Sprint(pod.Get("metadata.labels[ray.io/group]"))
		uid := fmt.Sprint(pod.Get("metadata.uid"))
		wanted, actual := size(pod)
		before := s.pods[uid]
		if before == nil {
			before = &podSeen{wanted: wanted}
			s.pods[uid] = before
			s.did(pod.First, "makes %s", group)
		}
		if wanted != before.wanted {
			s.did(pod.Last, "wants %s %s", s.called(group, pod.Name()), wanted)
		}
		if before.actual != "" && actual != before.actual {
			s.did(pod.Last, "has %s %s", s.called(group, pod.Name()), actual)
		}
		before.wanted, before.actual = wanted, actual
		if !pod.Gone.IsZero() && !before.gone {
			before.gone = true
			s.did(pod.Gone, "gone %s", s.called(group, pod.Name()))
		}
	}
}

// size is the CPU that a pod is to have and the CPU that it has, empty before it
// runs.
func size(pod scaling.Seen) (wanted, actual string) {
	wanted, _ = pod.Get("spec.containers[0].resources.limits.cpu").(string)
	actual, _ = pod.Get("status.containerStatuses[0].resources.limits.cpu").(string)
	return wanted, actual
}

// called is what a pod is called.
func (s *seen) called(group, pod string) string {
	if s.names[pod] == "" {
		s.count[group]++
		s.names[pod] = fmt.Sprintf("%s-%d", group, s.count[group])
	}
	return s.names[pod]
}

func (s *seen) lookAtTasks(w *scaling.World, c scaling.Cluster) {
	for _, b := range s.script.batches() {
		tasks := w.TaskGate.Tasks(c.Name + ":" + b.name)
		if b.Bundles != "" {
			s.lookAtGang(w, b, tasks)
			continue
		}
		for _, task := range tasks {
			s.lookAtTask(w, b, task.Name, task.Began, task.Ended, task.Lost, task.Pod)
		}
	}
}

// lookAtGang tells of a placement group as of one job: it begins with the last of
// its tasks, and ends with them.
func (s *seen) lookAtGang(w *scaling.World, b batch, tasks []scaling.Task) {
	if len(tasks) < b.tasks() {
		return
	}
	var pods []string
	for _, task := range tasks {
		pods = append(pods, task.Pod)
	}
	s.lookAtTask(w, b, b.name, tasks[len(tasks)-1].Began, endOfAll(tasks), false, pods...)
}

// endOfAll is when the last of some tasks ended, zero while one goes on.
func endOfAll(tasks []scaling.Task) (last time.Time) {
	for _, task := range tasks {
		if task.Ended.IsZero() {
			return time.Time{}
		}
		if task.Ended.After(last) {
			last = task.Ended
		}
	}
	return last
}

func (s *seen) lookAtTask(w *scaling.World, b batch, task string, began, ended time.Time, lost bool, pods ...string) {
	if !began.Equal(s.begun[task]) {
		s.begun[task] = began
		var groups []string
		for _, name := range pods {
			pod, _ := w.Pod(name)
			groups = append(groups, fmt.Sprint(pod.Get("metadata.labels[ray.io/group]")))
		}
		slices.Sort(groups)
		s.did(began, "begins %s %s", b.name, strings.Join(groups, " "))
	}
	if !ended.IsZero() && !ended.Equal(s.ended[task]) {
		s.ended[task] = ended
		word := "ends"
		if lost {
			word = "loses"
		}
		s.did(ended, "%s %s", word, b.name)
	}
}
