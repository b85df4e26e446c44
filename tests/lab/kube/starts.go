package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A raylet ends when its agents have not written their ports some 15 seconds after
// it has started them. Each Ray node costs the processor several seconds to start, so
// where a machine with few cores starts many at once, none is up in time, and pods end
// for a reason that no test is about. Of the whole machine, whatever number of labs it
// has, as many Ray nodes start at a time as it has cores.

const (
	// startPatience is for how long a start may keep others waiting.
	startPatience = 20 * time.Second
	startPoll     = 50 * time.Millisecond
)

// rayPorts are the files of a Ray session by which a raylet knows its agents' ports.
var rayPorts = []string{"dashboard_agent_listen_port_*", "runtime_env_agent_port_*"}

func (c command) startsRay() bool { return slices.ContainsFunc(c.Argv, rayStart.MatchString) }

// takeStart waits for the turn of a Ray node to start, or until nobody wants it to any
// more. Closing the file that is returned lets the next one start.
func takeStart(ctx context.Context) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), "rayfit-lab-starts-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of starts: %w", err)
	}
	for {
		for place := range runtime.NumCPU() {
			file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(place)), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, fmt.Errorf("take the turn of a start: %w", err)
			}
			if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				return file, nil
			}
			_ = file.Close()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("take the turn of a start: %w", ctx.Err())
		case <-time.After(startPoll):
		}
	}
}

// started waits until the Ray node of a container is up, has ended, or has had its time.
func (p *containerProcess) started() {
	patience := time.After(startPatience)
	for !p.knowsAgents() {
		select {
		case <-p.done:
			return
		case <-patience:
			return
		case <-time.After(startPoll):
		}
	}
}

func (p *containerProcess) knowsAgents() bool {
	// Not session_latest, which is a link that holds in the container only.
	session := filepath.Join("/proc", strconv.Itoa(p.pid), "root/tmp/ray/session_2*")
	for _, name := range rayPorts {
		found, err := filepath.Glob(filepath.Join(session, name))
		if err != nil || len(found) == 0 {
			return false
		}
	}
	return true
}
