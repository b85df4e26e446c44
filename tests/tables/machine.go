package tables

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what has to be known of a computer, and of what ran on it, to judge
// figures from it.
type Machine struct {
	commit string
	cpu    string
	cores  int
	kernel string
}

// ThisMachine is the one that this runs on, with the commit that is checked out.
func ThisMachine() (Machine, error) {
	commit, err := Commit()
	return Machine{commit: commit, cpu: cpuModel(), cores: runtime.NumCPU(), kernel: kernel()}, err
}

func cpuModel() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU (" + runtime.GOARCH + ")"
}

// kernel is the release without what a distribution or a cloud adds to it.
func kernel() string {
	raw, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "Linux"
	}
	release, _, _ := strings.Cut(strings.TrimSpace(string(raw)), "-")
	return "Linux " + release
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s", m.cpu, m.cores, m.kernel, m.commit)
}
