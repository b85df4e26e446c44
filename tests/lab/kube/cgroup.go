package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// controller is one of the kernel's: it holds what is in a cgroup to a limit.
type controller struct {
	// variable is that of a container that gets a cgroup of the controller, with the limit
	// that the kubelet sets, and sees it where containers see theirs. All others run
	// without, because most tests are not about it.
	variable string
	// name is that of its tree of version 1, and of the controller in version 2.
	name string
	// files are the contents of its files for a container's resources, in the order in which
	// they are written; nothing for what is left as it is.
	files func(of *cri.LinuxContainerResources, version2 bool) []limitFile
}

type limitFile struct{ name, content string }

var controllers = []controller{
	{"LAB_MEMORY_CGROUP", "memory", memoryFiles},
	{"LAB_CPU_CGROUP", "cpu", cpuFiles},
}

func memoryFiles(of *cri.LinuxContainerResources, version2 bool) []limitFile {
	limit := of.GetMemoryLimitInBytes()
	if limit <= 0 {
		return nil
	}
	name := "memory.limit_in_bytes"
	if version2 {
		name = "memory.max"
	}
	return []limitFile{{name, strconv.FormatInt(limit, 10)}}
}

// cpuFiles are for how many microseconds of each period it may run; a container without a limit
// has no quota.
func cpuFiles(of *cri.LinuxContainerResources, version2 bool) []limitFile {
	quota, period := of.GetCpuQuota(), of.GetCpuPeriod()
	if quota == 0 || period <= 0 {
		return nil
	}
	if !version2 {
		return []limitFile{
			{"cpu.cfs_period_us", strconv.FormatInt(period, 10)},
			{"cpu.cfs_quota_us", strconv.FormatInt(quota, 10)},
		}
	}
	if quota < 0 {
		return []limitFile{{"cpu.max", fmt.Sprintf("max %d", period)}}
	}
	return []limitFile{{"cpu.max", fmt.Sprintf("%d %d", quota, period)}}
}

// cgroupRoot is where the kernel's cgroups are, in the machine and in a container.
const cgroupRoot = "/sys/fs/cgroup"

// containerCgroup is a cgroup of a container: of version 2, with all controllers that it asks for,
// or of version 1, with one of them.
type containerCgroup struct {
	dir string
	// seenAt is where the container sees it.
	seenAt   string
	version2 bool
	of       []controller
}

// newCgroups makes the cgroups of a container that asks for some.
func newCgroups(c *container, env []string) ([]*containerCgroup, error) {
	var wanted []controller
	for _, one := range controllers {
		if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, one.variable+"=") }) {
			wanted = append(wanted, one)
		}
	}
	var groups []*containerCgroup
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err != nil {
		for _, one := range wanted {
			groups = append(groups, &containerCgroup{seenAt: filepath.Join(cgroupRoot, one.name), of: []controller{one}})
		}
	} else if len(wanted) > 0 {
		groups = []*containerCgroup{{seenAt: cgroupRoot, version2: true, of: wanted}}
	}
	for _, g := range groups {
		if err := g.make(filepath.Base(c.dir)); err != nil {
			return nil, err
		}
		if err := g.limit(c.resources); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

func (g *containerCgroup) make(name string) error {
	parent := filepath.Join(g.seenAt, "rayfit-lab")
	g.dir = filepath.Join(parent, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("make the lab's cgroup (this needs root, and the controller): %w", err)
	}
	if g.version2 {
		for _, dir := range []string{g.seenAt, parent} {
			for _, one := range g.of {
				if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+one.name), 0o644); err != nil {
					return fmt.Errorf("let cgroups below %s limit %s: %w", dir, one.name, err)
				}
			}
		}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the container's cgroup: %w", err)
	}
	return nil
}

// limit sets what the container may use. As with a real runtime, version 1 refuses less
// memory than is in use.
func (g *containerCgroup) limit(resources *cri.LinuxContainerResources) error {
	for _, one := range g.of {
		for _, file := range one.files(resources, g.version2) {
			if err := os.WriteFile(filepath.Join(g.dir, file.name), []byte(file.content), 0o644); err != nil {
				return fmt.Errorf("limit the container's %s to %s: %w", one.name, file.content, err)
			}
		}
	}
	return nil
}

func (g *containerCgroup) procs() string { return filepath.Join(g.dir, "cgroup.procs") }

// remove takes the cgroup away once the kernel has reaped its processes, which
// may be a moment after the first one has ended.
func (g *containerCgroup) remove() {
	for range 100 {
		if err := os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// join makes this process, and what it starts, part of cgroups.
func join(procs []string) error {
	for _, file := range procs {
		if err := os.WriteFile(file, []byte("0"), 0o644); err != nil {
			return fmt.Errorf("join the container's cgroup: %w", err)
		}
	}
	return nil
}
