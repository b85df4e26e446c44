package libraries_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// serve deploys an application that scales with its load, and sends it requests all
// the time: few, many, and few again. Pods grow and come for it, and shrink and go,
// and no request fails.
func (s scene) serve(t *testing.T) {
	const replicas = 4
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.w.Head(s.c)
	if err != nil {
		t.Fatal(err)
	}
	d := s.drive(t)
	d.do(t, fmt.Sprintf("deploy(%d, %d)", port, replicas))
	defer func() {
		if t.Failed() { // what it needs would be in the way of the next library
			_, _ = d.EvalWithin(context.Background(), patience, script+"\nend_serve()")
		}
	}()
	load := scalingtest.NewClients(fmt.Sprintf("http://%v:%d/", head.Get("status.podIP"), port), s.w.Notify)
	defer load.End()
	waves := 1
	if full() {
		waves = 3
	}
	for range waves {
		load.Set(1)
		s.until(t, "one small worker for one replica", func() error { return s.exactly(1, 1) })
		// Twice as many as the replicas are wanted for: where clients get on slowly, fewer
		// of them wait for an answer at a time.
		load.Set(4 * replicas)
		begin := time.Now()
		s.until(t, "all replicas answer", func() error { return load.AnsweredBy(replicas) })
		t.Logf("%d replicas answer %s after the load", replicas, time.Since(begin).Round(time.Millisecond))
		if err := s.atLeast(2, replicas); err != nil {
			t.Error(err)
		}
	}
	load.Set(1)
	s.until(t, "one small worker for one replica", func() error { return s.exactly(1, 1) })
	load.End()
	answered, failed := load.Results()
	t.Logf("%d requests were answered", answered)
	if len(failed) > 0 {
		t.Errorf("%d requests failed: %v", len(failed), failed)
	}
	d.do(t, "end_serve()")
	s.rests(t)
}
