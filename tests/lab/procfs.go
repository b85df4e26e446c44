package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// markerVariable is in the environment of every process of a lab, containers
// included. It lets Stop find processes whose pid was never written down
// because starting died half-way.
const markerVariable = "RAYFIT_LAB_CHILD_OF"

// startTime reads when a process began, in clock ticks since boot. Together
// with the pid it names a process for good, while a pid alone may be reused. It
// reports false when the process is gone or only waits to be reaped. A process whose
// first thread has ended is neither while another one of it is ending: until that has
// ended too, its ports are open.
func startTime(pid int) (string, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The second field is the command in parentheses and may contain spaces.
	_, rest, found := bytes.Cut(raw[bytes.LastIndexByte(raw, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest))
	if !found || len(fields) < 20 {
		return "", false
	}
	ended, threads := fields[0] == "Z" || fields[0] == "X", fields[17]
	if ended && (threads == "0" || threads == "1") {
		return "", false
	}
	return fields[19], true
}

// markedProcesses are the pids of all live processes of the lab in dir.
func markedProcesses(dir string) []int {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	marker := []byte(markerVariable + "=" + dir)
	var pids []int
	for _, entry := range entries {
		environ, err := os.ReadFile(entry)
		if err != nil || !hasVariable(environ, marker) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if _, alive := startTime(pid); alive {
			pids = append(pids, pid)
		}
	}
	return pids
}

func hasVariable(environ, variable []byte) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(v, variable) {
			return true
		}
	}
	return false
}

// killMarked ends whatever is left of the lab in dir. The list is read again
// until it is empty, because a process may start another while it is ended.
func killMarked(dir string) error {
	var left []int
	gone := func() bool {
		left = markedProcesses(dir)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	}
	if !waitUntil(stopTimeout, gone) {
		return fmt.Errorf("processes %v of the lab in %s do not end: end them by hand", left, dir)
	}
	return nil
}
