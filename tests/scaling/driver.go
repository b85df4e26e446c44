package scaling

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed driver.py
var driverScript string

// Driver is a Ray driver inside a cluster's head pod that does what it is told.
type Driver struct {
	cancel context.CancelFunc
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	stderr *bytes.Buffer
	world  *World
	head   string // the pod that it runs in
	ended  sync.Once

	mu   sync.Mutex
	said []string
}

// Said are the lines that Ray has printed in the driver.
func (d *Driver) Said() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.said)
}

// tries are how often a driver tries to join its cluster. A head whose parts
// start too slowly for each other ends itself, the driver with it, and the
// operator makes another; what waits in vain ends itself (see driver.py).
const tries = 4

// Drive starts a driver in a cluster's head pod.
func (w *World) Drive(ctx context.Context, c Cluster) (*Driver, error) {
	return w.drive(ctx, c, "quiet")
}

// DriveAloud starts a driver in which Ray prints what it has to say: see Said.
func (w *World) DriveAloud(ctx context.Context, c Cluster) (*Driver, error) {
	return w.drive(ctx, c, "aloud")
}

func (w *World) drive(ctx context.Context, c Cluster, how string) (*Driver, error) {
	var failed []error
	for range tries {
		d, err := w.join(ctx, c, how)
		if err == nil {
			return d, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("connect a driver to %s: %w", c.Name, errors.Join(failed...))
}

func (w *World) join(ctx context.Context, c Cluster, how string) (*Driver, error) {
	var head Seen
	err := w.Until(ctx, "wait for a head to drive", func() (err error) {
		if head, err = w.Head(c); err != nil {
			return err
		}
		return ready(head)
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := w.Lab.KubectlCommand(ctx, "exec", "-i", "-n", w.Namespace, head.Name(), "-c", "ray-head", "--", "python", "-u", "-c", driverScript, w.TaskGate.URL, c.Name, how)
	d := &Driver{cancel: cancel, cmd: cmd, lines: make(chan string, 100), stderr: &bytes.Buffer{}, world: w, head: head.Name()}
	cmd.Stderr = d.stderr
	if d.stdin, err = cmd.StdinPipe(); err == nil {
		err = d.start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	if _, err := d.answer(ctx, Patience); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Driver) start() error {
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(d.lines)
		scanner := bufio.NewScanner(stdout)
		// A value is one line, and a dashboard is a long one.
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			if line := scanner.Text(); strings.HasPrefix(line, "{") {
				d.lines <- line
			} else {
				d.mu.Lock()
				d.said = append(d.said, line)
				d.mu.Unlock()
				d.world.Notify()
			}
		}
	}()
	return nil
}

// Do runs Python code in the driver, which knows the functions of driver.py.
func (d *Driver) Do(ctx context.Context, code string) error {
	_, err := d.Eval(ctx, code)
	return err
}

// Eval runs code and returns the representation of what it calls `value`.
func (d *Driver) Eval(ctx context.Context, code string) (string, error) {
	return d.EvalWithin(ctx, Patience, code)
}

// EvalWithin is Eval, for code that takes longer than most.
func (d *Driver) EvalWithin(ctx context.Context, patience time.Duration, code string) (string, error) {
	line, err := json.Marshal(code)
	if err != nil {
		return "", fmt.Errorf("encode %q: %w", code, err)
	}
	if _, err := d.stdin.Write(append(line, '\n')); err != nil {
		return "", d.lost(fmt.Sprintf("tell the driver %q: %v", code, err))
	}
	value, err := d.answer(ctx, patience)
	if err != nil {
		return "", fmt.Errorf("run %q in the driver: %w", code, err)
	}
	return value, nil
}

func (d *Driver) answer(ctx context.Context, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case line, ok := <-d.lines:
		if !ok {
			return "", d.lost("the driver has ended")
		}
		var answer struct {
			OK           bool
			Error, Value string
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			return "", fmt.Errorf("the driver says %q: %w", line, err)
		}
		if !answer.OK {
			return "", fmt.Errorf("%s", answer.Error)
		}
		return answer.Value, nil
	case <-ctx.Done():
		return "", d.lost("no answer after " + patience.String())
	}
}

// lost ends a driver that will not answer any more, and tells what it said last.
func (d *Driver) lost(why string) error {
	d.Close()
	return fmt.Errorf("%s; it said: %s; %s", why, d.stderr, d.world.fate(d.head))
}

// Close ends the driver; what it started ends with it. Who waits for an answer
// may close it too.
func (d *Driver) Close() {
	d.ended.Do(func() {
		_ = d.stdin.Close()
		d.cancel()
		_ = d.cmd.Wait()
	})
}
