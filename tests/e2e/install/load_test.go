package install

import (
	"context"
	"fmt"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load makes calls at a steady rate until it is stopped, and counts them.
type load struct {
	calls, failed atomic.Int64
	first         atomic.Pointer[failure]
	begin         time.Time
	stop          context.CancelFunc
	running       sync.WaitGroup
}

type failure struct {
	at  time.Time
	err error
}

// startLoad starts clients that together make rate calls each second, each one
// after another as long as the answers come in time.
func startLoad(t *testing.T, clients, rate int, call func(context.Context) error) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{stop: cancel, begin: time.Now()}
	for range clients {
		l.running.Go(func() {
			tick := time.NewTicker(time.Second * time.Duration(clients) / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					// The call itself is never cut short: it would count as failed.
					l.count(call(context.WithoutCancel(ctx)))
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); l.running.Wait() })
	return l
}

func (l *load) count(err error) {
	l.calls.Add(1)
	if err != nil {
		l.failed.Add(1)
		l.first.CompareAndSwap(nil, &failure{time.Now(), err})
	}
}

// underWay waits until so many calls were made, and so all connections are open.
func (l *load) underWay(t *testing.T, calls int64) {
	t.Helper()
	labtest.Eventually(t, time.Minute, "the load is under way", func() error {
		if made := l.calls.Load(); made < calls {
			return fmt.Errorf("%d calls so far", made)
		}
		return nil
	})
}

// end stops the load and fails the test if one call failed, or too few were made.
func (l *load) end(t *testing.T, what string, least int64) {
	t.Helper()
	l.stop()
	l.running.Wait()
	calls, failed := l.calls.Load(), l.failed.Load()
	t.Logf("%s: %d calls, %.0f a second, %d failed", what, calls, float64(calls)/time.Since(l.begin).Seconds(), failed)
	if first := l.first.Load(); first != nil {
		t.Errorf("%s: %d of %d calls failed, the first at %s: %v", what, failed, calls, first.at.Format(time.TimeOnly), first.err)
	}
	if calls < least {
		t.Errorf("%s: only %d calls, too few to show anything; %d were meant", what, calls, least)
	}
}
