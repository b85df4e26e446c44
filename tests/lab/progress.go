package lab

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress tells a person what the lab does, line by line. On a terminal the
// line of a long step counts its seconds in place.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{out: out}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// during runs work and shows for how long it has been running.
func (p *progress) during(what string, work func() error) error {
	begin := time.Now()
	interval := 15 * time.Second
	if p.terminal {
		interval = time.Second
	} else {
		p.step("%s ...", what)
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			p.finish(what, time.Since(begin), err)
			return err
		case <-tick.C:
			p.elapsed(what, time.Since(begin))
		}
	}
}

func (p *progress) elapsed(what string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin, end := "", "\n"
	if p.terminal {
		begin, end = "\r\x1b[K", ""
	}
	fmt.Fprintf(p.out, "%s%s ... %.0f s%s", begin, what, d.Seconds(), end)
}

func (p *progress) finish(what string, d time.Duration, err error) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	p.step("%s: %s after %.1f s", what, outcome, d.Seconds())
}
