package policy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// load makes an object over and over, several at once, until the test ends.
type load struct {
	object rig.Object

	mu      sync.Mutex
	before  string
	after   string
	changed time.Time // when the first answer of after came
	late    []string  // answers of before to calls that began later
	failed  []string
	count   int
}

func startLoad(t *testing.T, object rig.Object, workers int) *load {
	t.Helper()
	l := &load{object: object}
	l.before = comesTo(object)
	l.after = l.before
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				l.take(begun, comesTo(object))
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
	return l
}

// take notes the answer to a call that began at a time.
func (l *load) take(begun time.Time, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	switch {
	case answer != l.before && answer != l.after:
		l.failed = append(l.failed, answer)
	case answer == l.after && l.changed.IsZero():
		l.changed = time.Now()
	case answer == l.before && l.before != l.after && !l.changed.IsZero() && begun.After(l.changed):
		l.late = append(l.late, answer)
	}
}

// turn makes a change and waits until its answer has come, and then some more.
func (l *load) turn(t *testing.T, after string, apply func()) {
	t.Helper()
	l.mu.Lock()
	l.before, l.after, l.changed = l.after, after, time.Time{}
	l.mu.Unlock()
	apply()
	made := time.Now()
	labtest.Eventually(t, patience, "wait until the answer is "+after, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.changed.IsZero() {
			return errors.New("it is not yet")
		}
		return nil
	})
	l.mu.Lock()
	took, seen := l.changed.Sub(made), l.count
	l.mu.Unlock()
	labtest.Eventually(t, patience, "wait for more answers", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.count < seen+20 {
			return fmt.Errorf("%d more", l.count-seen)
		}
		return nil
	})
	t.Logf("%s %s after the change was made", after, took.Round(time.Millisecond))
}

// end checks that every answer was that of before or of after a change.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d objects were made", l.count)
	if len(l.failed) > 0 {
		t.Errorf("%d answers are neither, one of them: %s", len(l.failed), l.failed[0])
	}
	if len(l.late) > 0 {
		t.Errorf("%d answers are as before a change that was in force already", len(l.late))
	}
}

func TestSelectorsChangeUnderLoadAndNoCallFails(t *testing.T) {
	ns := namespace(t, "loaded")
	policy(t, "below", "{mode: Warn}")
	policy(t, "selecting", "{priority: 1, mode: Enforce, match: {namespaceSelector: {matchLabels: {level: strict}}}}")
	object := faulty(ns, "a").Set("metadata.labels[tier]", "prod")
	labtest.Eventually(t, patience, "wait until the policies are in force", func() error { return is(comesTo(object), "warned") })

	l := startLoad(t, object, 4)
	match := func(selectors string) func() {
		return func() { change(t, "selecting", `{"match":`+selectors+`}`) }
	}
	l.turn(t, "denied", func() { must(t, "label", "namespace", ns, "level=strict") })
	l.turn(t, "warned", match(`{"namespaceSelector":{"matchLabels":{"level":"other"}}}`))
	l.turn(t, "denied", match(`{"namespaceSelector":null,"objectSelector":{"matchLabels":{"tier":"prod"}}}`))
	l.turn(t, "warned", match(`{"objectSelector":{"matchLabels":{"tier":"test"}}}`))
	l.turn(t, "denied", match(`{"objectSelector":null,"names":["a*"]}`))
	l.turn(t, "warned", match(`{"names":null,"namespaceSelector":{"matchLabels":{"level":"none"}}}`))
	l.turn(t, "denied", match(`{"namespaceSelector":{"matchLabels":{"level":"strict"}}}`))
	l.turn(t, "warned", func() { must(t, "label", "namespace", ns, "level-") })
	l.end(t)
}
