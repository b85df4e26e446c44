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
)

// memoryLimited is the variable of a container that gets a cgroup with the
// memory limit that the kubelet sets, and sees it where containers see theirs.
// All others run without, because most tests are not about memory.
const memoryLimited = "LAB_MEMORY_CGROUP"

// memoryCgroup is the cgroup of a container, of version 2, or of version 1
// where the machine has the memory controller there.
type memoryCgroup struct {
	dir, limitFile string
	// seenAt is where the container sees it.
	seenAt string
}

// newMemoryCgroup makes the cgroup of a container that asks for one.
func newMemoryCgroup(c *container, env []string) (*memoryCgroup, error) {
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, memoryLimited+"=") }) {
		return nil, nil
	}
	g := &memoryCgroup{seenAt: "/sys/fs/cgroup/memory", limitFile: "memory.limit_in_bytes"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		g.seenAt, g.limitFile = "/sys/fs/cgroup", "memory.max"
	}
	parent := filepath.Join(g.seenAt, "rayfit-lab")
	g.dir = filepath.Join(parent, filepath.Base(c.dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("make the lab's cgroup (this needs root, and the memory controller): %w", err)
	}
	if g.limitFile == "memory.max" {
		for _, dir := range []string{g.seenAt, parent} {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0o644); err != nil {
				return nil, fmt.Errorf("let cgroups below %s limit memory: %w", dir, err)
			}
		}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the container's cgroup: %w", err)
	}
	if limit := c.resources.GetMemoryLimitInBytes(); limit > 0 {
		return g, g.limit(limit)
	}
	return g, nil
}

// limit sets the most memory. As with a real runtime, version 1 refuses less
// than is in use.
func (g *memoryCgroup) limit(bytes int64) error {
	if err := os.WriteFile(filepath.Join(g.dir, g.limitFile), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		return fmt.Errorf("limit the container's memory to %d bytes: %w", bytes, err)
	}
	return nil
}

func (g *memoryCgroup) procs() string { return filepath.Join(g.dir, "cgroup.procs") }

// remove takes the cgroup away once the kernel has reaped its processes, which
// may be a moment after the first one has ended.
func (g *memoryCgroup) remove() {
	for range 100 {
		if err := os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// join makes this process, and what it starts, part of a cgroup.
func join(procs string) error {
	if procs == "" {
		return nil
	}
	if err := os.WriteFile(procs, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("join the container's cgroup: %w", err)
	}
	return nil
}
