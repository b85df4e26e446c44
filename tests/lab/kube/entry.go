package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// containerEntry is the first program in a container: it arranges the view of
// the file system and then becomes the container's command.
const containerEntry = "container-entry"

// rootBuilt is a pipe's end that is closed once the container's root is built.
const rootBuilt = 3

// specVariable carries the containerSpec to it.
const specVariable = "LAB_CONTAINER_SPEC"

// containerSpec is all that a container's first process needs to know.
type containerSpec struct {
	Command command
	Dir     string
	Root    string // an empty directory to build the root in
	Mounts  []bindMount
	User    int64
	Group   int64
	Groups  []int64
	Cgroups []string // the lists of their processes, if it has any
}

// bindMount shows a host file or directory at a path in the container.
type bindMount struct {
	Source, Target string
	ReadOnly       bool
}

// enterContainer runs in fresh mount and PID namespaces.
func enterContainer() error {
	// Credentials and the parent-death signal belong to a thread.
	runtime.LockOSThread()
	var spec containerSpec
	if err := json.Unmarshal([]byte(os.Getenv(specVariable)), &spec); err != nil {
		return fmt.Errorf("read the container's specification: %w", err)
	}
	if err := join(spec.Cgroups); err != nil {
		return err
	}
	if err := buildRoot(spec.Root, spec.Mounts); err != nil {
		return err
	}
	// From here on others may enter.
	if err := os.NewFile(rootBuilt, "root-built").Close(); err != nil {
		return fmt.Errorf("tell that the root is built: %w", err)
	}
	program, err := lookPath(spec.Command.Path, spec.Command.Env)
	if err != nil {
		return err
	}
	dir := spec.Dir
	if dir == "" {
		dir = "/"
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("change to the working directory: %w", err)
	}
	if err := become(spec); err != nil {
		return err
	}
	err = syscall.Exec(program, spec.Command.Argv, spec.Command.Env)
	return fmt.Errorf("execute %s: %w", program, err)
}

// become takes the container's user and groups.
func become(spec containerSpec) error {
	if spec.User == 0 && spec.Group == 0 && len(spec.Groups) == 0 {
		return nil
	}
	groups := make([]int, 0, len(spec.Groups))
	for _, g := range spec.Groups {
		groups = append(groups, int(g))
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(int(spec.Group)), syscall.Setuid(int(spec.User))); err != nil {
		return fmt.Errorf("become user %d: %w", spec.User, err)
	}
	// Changing the user has cleared it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask to die with the node: %w", err)
	}
	return nil
}

// lookPath finds a program on the container's own PATH.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	index := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if index >= 0 {
		for _, dir := range filepath.SplitList(strings.TrimPrefix(env[index], "PATH=")) {
			candidate := filepath.Join(dir, name)
			if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return candidate, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not on this machine's PATH: images are only names in the lab, their programs must be installed here", name)
}

// withHosts runs a host program, such as the operator, that shall see the
// cluster's Services by name: with-hosts FILE PROGRAM ARGS...
func withHosts(args []string) error {
	if len(args) < 2 {
		return errors.New("with-hosts needs a hosts file and a program")
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("get a mount namespace (this needs root): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount(args[0], "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("show %s as /etc/hosts: %w", args[0], err)
	}
	err := syscall.Exec(args[1], args[1:], os.Environ())
	return fmt.Errorf("execute %s: %w", args[1], err)
}
