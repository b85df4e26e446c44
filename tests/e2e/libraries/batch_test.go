package libraries_test

import (
	"fmt"
	"testing"
	"time"
)

// data runs a pipeline whose autoscaler asks for resources by the rates that it
// measures. All rows come out, and no call of a function is lost or repeated.
func (s scene) data(t *testing.T) {
	const blocks = 16
	d := s.drive(t)
	s.free("data-tasks", "data-tasks-ended", "data-actors", "data-actors-ended")
	begin := time.Now()
	ended := d.begin(t, fmt.Sprintf("value = data(%d, 3)", blocks))
	// A task and two actors are more than a pod has, whatever the rates are.
	s.until(t, "pods grow and come for the pipeline", func() error { return s.atLeast(2, mostOfAPod+1) })
	_, had := s.size()
	t.Logf("there are several pods, one of which has grown, %s after the beginning", time.Since(begin).Round(time.Millisecond))
	s.free("data-last")
	if all := ended(t); all != "True" {
		t.Errorf("all rows came out: %s", all)
	}
	s.each(t, blocks, "data-tasks", "data-tasks-ended", "data-actors", "data-actors-ended")
	s.each(t, 1, "data-last")
	told := d.do(t, "value = told_by_data()")
	t.Logf("CPUs that Data has asked for and counted at the most: %s; the workers have had %d; the pipeline took %s", told, had, time.Since(begin).Round(time.Millisecond))
	d.Close()
	s.rests(t)
}

// tune tries a grid, of which all trials run at once.
func (s scene) tune(t *testing.T) {
	d := s.drive(t)
	ended := d.begin(t, fmt.Sprintf("value = tune_all(%d)", most))
	s.allAtWork(t, "tune", most)
	if got, want := ended(t), "(0, [0, 1, 4, 9, 16, 25])"; got != want {
		t.Errorf("errors and results of the trials are %s instead of %s", got, want)
	}
	s.each(t, most, "tune")
	d.Close()
	s.rests(t)
}

// train trains by several workers that need one another.
func (s scene) train(t *testing.T) {
	const workers = 4
	d := s.drive(t)
	s.free("train-ended")
	ended := d.begin(t, fmt.Sprintf("value = train_all(%d)", workers))
	s.allAtWork(t, "train", workers)
	if got, want := ended(t), "(3.0, 4)"; got != want {
		t.Errorf("slope and workers of the training are %s instead of %s", got, want)
	}
	s.each(t, workers, "train", "train-ended")
	d.Close()
	s.rests(t)
}

// allAtWork waits until so many of a batch work at once, for which pods must have
// come and grown, and lets them end.
func (s scene) allAtWork(t *testing.T, batch string, count int) {
	t.Helper()
	begin := time.Now()
	s.until(t, fmt.Sprintf("%d of %s at work", count, batch), func() error { return s.w.TaskGate.AtWork(s.batch(batch), count) })
	pods, cpus := s.size()
	t.Logf("%d of %s are at work on %d pods with %d CPUs %s after the beginning", count, batch, pods, cpus, time.Since(begin).Round(time.Millisecond))
	if pods < 2 || cpus == pods {
		t.Errorf("%d workers have %d CPUs: not several, or none has grown", pods, cpus)
	}
	s.free(batch)
}

func (s scene) batch(name string) string { return s.c.Name + ":" + name }

// free lets whatever checks in under these batches end.
func (s scene) free(batches ...string) {
	for _, batch := range batches {
		s.w.TaskGate.Release(s.batch(batch))
	}
}

// each checks that these batches have each had so many calls, none of which was lost:
// a library may begin lost ones again, and hide it so.
func (s scene) each(t *testing.T, count int, batches ...string) {
	t.Helper()
	for _, batch := range batches {
		calls := s.w.TaskGate.Tasks(s.batch(batch))
		if len(calls) != count {
			t.Errorf("%d calls of %s instead of %d", len(calls), batch, count)
		}
		for _, call := range calls {
			if call.Lost {
				t.Errorf("%s on pod %s was ended at its work", call.Name, call.Pod)
			}
		}
	}
}

// begin starts what takes long, and returns what waits for its value.
func (d driver) begin(t *testing.T, code string) (ended func(*testing.T) string) {
	t.Helper()
	type outcome struct {
		value string
		err   error
	}
	result := make(chan outcome, 1)
	go func() {
		value, err := d.EvalWithin(t.Context(), 2*patience, script+"\n"+code)
		result <- outcome{value, err}
	}()
	return func(t *testing.T) string {
		t.Helper()
		got := <-result
		if got.err != nil {
			t.Fatal(got.err)
		}
		return got.value
	}
}
