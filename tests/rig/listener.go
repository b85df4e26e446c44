package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var taken = regexp.MustCompile(`cannot listen on [\d.]+:(\d+): Address already in use`)

// whoListens says which processes of this machine listen at the ports that a log says
// are taken; nothing if it says no such thing.
func whoListens(log string) string {
	var said strings.Builder
	for _, found := range taken.FindAllStringSubmatch(log, 1) {
		var port int
		_, _ = fmt.Sscan(found[1], &port)
		fmt.Fprintf(&said, "; port %d has %q", port, listeners(port))
	}
	return said.String()
}

// listeners are the command lines of the processes that listen at a TCP port.
func listeners(port int) []string {
	var names []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		rows, _ := os.ReadFile(table)
		for row := range strings.Lines(string(rows)) {
			// sl, local address, remote address, state (0A listens), ..., inode
			fields := strings.Fields(row)
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				names = append(names, holder("socket:["+fields[9]+"]"))
			}
		}
	}
	return names
}

// holder is the command line of a process that has a socket open.
func holder(socket string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == socket {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "cmdline"))
			return strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return "nobody that can be seen: " + socket
}
