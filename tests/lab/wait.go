package lab

import (
	"context"
	"fmt"
	"time"
)

const pollInterval = 50 * time.Millisecond

// waitUntil polls a condition that cannot be waited for otherwise (a foreign
// process ending, a port being free) and says whether it came true in time.
func waitUntil(timeout time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(timeout)
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollInterval)
	}
	return true
}

// Eventually polls condition until it returns nil, the context ends, or timeout
// has passed; then it returns the condition's last error.
func Eventually(ctx context.Context, timeout time.Duration, what string, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begin := time.Now()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if gone, ok := err.(*endedError); ok {
			return fmt.Errorf("%s: %w", what, gone)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not after %s: %w", what, time.Since(begin).Round(time.Millisecond), err)
		case <-tick.C:
		}
	}
}
