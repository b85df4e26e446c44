package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc/PID/stat: 100 to the second on every Linux
// that Go runs on.
const clockTick = 10 * time.Millisecond

// CPUTime is what a process has used so far, in user and system mode.
func CPUTime(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the CPU time of process %d: its stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// Memory is a figure of /proc/PID/status in MiB: VmRSS is what a process holds
// now, VmHWM the most it ever held.
func Memory(pid int, figure string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == figure+":" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: its status has no %s", pid, figure)
}

// Cores is how much of a core a process uses, on average over a while.
func Cores(ctx context.Context, pid int, while time.Duration) (float64, error) {
	return CoresDuring(pid, func() error {
		select {
		case <-time.After(while):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// CoresDuring is how much of a core a process uses, on average, while something is done.
func CoresDuring(pid int, do func() error) (float64, error) {
	before, err := CPUTime(pid)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	after, err := CPUTime(pid)
	return float64(after-before) / float64(time.Since(begin)), err
}
