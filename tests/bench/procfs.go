package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

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
