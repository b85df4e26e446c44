package lab

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress tells a person what the lab does, line by line. On a terminal the
// line of a long step is written in place.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	// doing is how far a long step has come, if it says so.
	doing string
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

// at notes how far the step that is under way has come.
func (p *progress) at(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = fmt.Sprintf(format, args...) + ", "
}

// during runs work and shows how far it has come, and for how long it has been running.
func (p *progress) during(what string, work func() error) error {
	begin := time.Now()
	p.mu.Lock()
	p.doing = ""
	p.mu.Unlock()
	interval := 10 * time.Second
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
	fmt.Fprintf(p.out, "%s%s ... %s%s%s", begin, what, p.doing, spent(d), end)
}

func (p *progress) finish(what string, d time.Duration, err error) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	p.step("%s: %s after %s", what, outcome, spent(d))
}

// spent is a duration as people say it.
func spent(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
