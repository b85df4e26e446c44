package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first thread of a process may be the first to end, and its files, with the ports
// that it listens at, are open until the last one has ended.
func TestAProcessIsAliveUntilItsLastThreadHasEnded(t *testing.T) {
	const script = "import ctypes, sys, threading; threading.Thread(target=sys.stdin.read).start(); ctypes.CDLL(None).syscall(%d, 0)"
	cmd := exec.Command("python3", "-c", fmt.Sprintf(script, syscall.SYS_EXIT))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	err = Eventually(t.Context(), time.Minute, "wait until the first thread has ended", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			err = fmt.Errorf("it has not: %s", stat)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, alive := startTime(pid); !alive {
		t.Error("a process with a thread that waits is said to have ended")
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	// It is not waited for, so that it only waits to be reaped in the end.
	if !waitUntil(time.Minute, func() bool { _, alive := startTime(pid); return !alive }) {
		t.Error("a process whose last thread has ended is said to be alive")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
