package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// clockTick is the unit of /proc/PID/stat: 100 to the second on every Linux
// that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuTime is what a process has used so far, in user and system mode.
func cpuTime(pid int) (time.Duration, error) {
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

// memory is a figure of /proc/PID/status in MiB: VmRSS is what a process holds
// now, VmHWM the most it ever held.
func memory(pid int, figure string) (float64, error) {
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

// bind keeps a thread (0 is the calling one), and what it starts from then on,
// on one core.
func bind(thread, core int) error {
	var mask [16]uint64
	mask[core/64] = 1 << (core % 64)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY,
		uintptr(thread), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return fmt.Errorf("keep thread %d on core %d: %w", thread, core, errno)
	}
	return nil
}

// bindAll keeps every thread of this process on one core.
func bindAll(core int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list our threads: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return fmt.Errorf("list our threads: %w", err)
		}
		if err := bind(id, core); err != nil {
			return err
		}
	}
	return nil
}
