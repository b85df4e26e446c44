package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// exitCannotStart is what a real runtime reports for a command that is not there.
const exitCannotStart = 128

// containerProcess is a container's first process. It is process 1 of a PID
// namespace, so nothing of the container survives it, and the kernel kills it
// if the node dies.
type containerProcess struct {
	pid  int
	done chan struct{} // closed when the process is gone and its log complete
	cmd  *exec.Cmd
	logs *containerLog
	// alone is true if process 1 alone is asked to end, as in a real container.
	alone bool
	// asked is true once somebody has asked it to end.
	asked atomic.Bool
	// cgroups are its own, if it has any.
	cgroups []*containerCgroup
}

// stopAlone is the variable of a container whose process 1 alone is asked to
// end. All others are asked too, so that Ray ends as fast as tests want it to.
const stopAlone = "LAB_STOP_ALONE"

// launch starts a container's command, or returns nil if it has none.
func (r *processRuntime) launch(ctx context.Context, c *container) (*containerProcess, error) {
	command, err := r.options.commandOf(c)
	if err != nil || command.Path == "" {
		return nil, err
	}
	if !command.startsRay() {
		return r.start(c, command)
	}
	turn, err := takeStart(ctx)
	if err != nil {
		return nil, err
	}
	process, err := r.start(c, command)
	if err != nil {
		_ = turn.Close()
		return nil, err
	}
	go func() {
		process.started()
		_ = turn.Close()
	}()
	return process, nil
}

// start runs a command as the first process of a container.
func (r *processRuntime) start(c *container, command command) (*containerProcess, error) {
	spec, err := r.viewOf(c, command)
	if err != nil {
		return nil, err
	}
	cgroups, err := newCgroups(c, command.Env)
	if err != nil {
		return nil, err
	}
	for _, g := range cgroups {
		spec.Cgroups = append(spec.Cgroups, g.procs())
		spec.Mounts = append(spec.Mounts, bindMount{Source: g.dir, Target: g.seenAt, ReadOnly: true})
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the container: %w", err)
	}
	log, err := newContainerLog(c.logPath)
	if err != nil {
		return nil, err
	}
	built, building, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe to the container: %w", err), log.Close())
	}
	defer built.Close()
	cmd := exec.Command("/proc/self/exe", containerEntry)
	cmd.ExtraFiles = []*os.File{building} // rootBuilt
	cmd.Env = []string{specVariable + "=" + string(encoded)}
	if r.options.extraEnv != "" {
		cmd.Env = append(cmd.Env, r.options.extraEnv)
	}
	cmd.Stdout, cmd.Stderr = log.stream("stdout"), log.stream("stderr")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	err = spawn(func() error {
		if r.network != nil {
			return r.network.start(c.sandboxID, cmd.Start)
		}
		return cmd.Start()
	})
	_ = building.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a container in namespaces of its own (this needs root): %w", err), log.Close())
	}
	// Until its root is built the container is in the host's tree, where nobody
	// may run anything for it. The other end is closed then, or when it dies.
	_, _ = io.Copy(io.Discard, built)
	alone := slices.ContainsFunc(command.Env, func(e string) bool { return strings.HasPrefix(e, stopAlone+"=") })
	return &containerProcess{pid: cmd.Process.Pid, done: make(chan struct{}), cmd: cmd, logs: log, alone: alone, cgroups: cgroups}, nil
}

// viewOf says what the container sees of the file system.
func (r *processRuntime) viewOf(c *container, command command) (containerSpec, error) {
	private := filepath.Join(c.dir, "tmp")
	for _, dir := range []string{private, filepath.Join(c.dir, "root")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return containerSpec{}, fmt.Errorf("make the container's directory: %w", err)
		}
	}
	if err := os.Chmod(private, 0o1777); err != nil {
		return containerSpec{}, fmt.Errorf("open the container's /tmp to all users: %w", err)
	}
	security := c.config.GetLinux().GetSecurityContext()
	spec := containerSpec{
		Command: command,
		Dir:     c.config.WorkingDir,
		Root:    filepath.Join(c.dir, "root"),
		Mounts:  []bindMount{{Source: private, Target: "/tmp", ReadOnly: security.GetReadonlyRootfs()}},
		User:    security.GetRunAsUser().GetValue(),
		Group:   security.GetRunAsGroup().GetValue(),
		Groups:  security.GetSupplementalGroups(),
	}
	if security.GetRunAsUser() == nil && command.Path == rayfitPath {
		spec.User, spec.Group = rayfitUser, rayfitUser
	}
	if r.options.hosts != "" {
		hosts, err := hostsOf(r.options.hosts, c.sandbox.GetMetadata().GetNamespace())
		if err != nil {
			return containerSpec{}, err
		}
		spec.Mounts = append(spec.Mounts, bindMount{Source: hosts, Target: "/etc/hosts", ReadOnly: true})
	}
	if command.Path == rayfitPath {
		spec.Mounts = append(spec.Mounts, bindMount{Source: r.options.rayfit, Target: rayfitPath, ReadOnly: true})
	}
	for _, bin := range filepath.SplitList(r.options.path) {
		home := filepath.Dir(bin)
		spec.Mounts = append(spec.Mounts, bindMount{Source: home, Target: home, ReadOnly: true})
	}
	spec.Mounts = append(spec.Mounts, r.options.outside.mounts()...)
	resolver := filepath.Join(c.dir, "resolv.conf")
	// Names that the hosts file does not know must not be asked of anybody's
	// DNS server: nothing answers on loopback, so looking them up fails at once.
	if err := os.WriteFile(resolver, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return containerSpec{}, fmt.Errorf("write the container's resolv.conf: %w", err)
	}
	spec.Mounts = append(spec.Mounts, bindMount{Source: resolver, Target: "/etc/resolv.conf", ReadOnly: true})
	for _, m := range c.config.Mounts {
		// The kubelet's own /etc/hosts knows the pod alone; ours, the Services.
		if m.ContainerPath != "/etc/hosts" {
			spec.Mounts = append(spec.Mounts, bindMount{Source: m.HostPath, Target: m.ContainerPath, ReadOnly: m.Readonly})
		}
	}
	return spec, nil
}

// hostsOf is the hosts file of a namespace, in which the short names of its
// Services lead to them. The service proxy fills it; a container may be faster.
func hostsOf(dir, namespace string) (string, error) {
	path := filepath.Join(dir, namespace)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("make the hosts file of namespace %s: %w", namespace, err)
	}
	_, err = file.WriteString("127.0.0.1 localhost\n")
	return path, errors.Join(err, file.Close())
}

// wait returns the exit code and the reason that Kubernetes shows for it.
func (p *containerProcess) wait() (code int32, reason string) {
	_ = p.cmd.Wait()
	_ = p.logs.Close()
	for _, g := range p.cgroups {
		g.remove()
	}
	defer close(p.done)
	code = exitCode(p.cmd.ProcessState)
	if code == 0 {
		return 0, "Completed"
	}
	return code, "Error"
}

// exitCode is a process' as a shell tells it: a signal counts from 128.
func exitCode(state *os.ProcessState) int32 {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}

// stop asks the container's process group to end, or process 1 alone, and ends
// it after the grace period. It returns when the container is gone.
func (p *containerProcess) stop(grace time.Duration) {
	p.asked.Store(true)
	group := -p.pid
	if p.alone {
		group = p.pid
	}
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
		<-p.done
	}
}

// kill ends process 1, and with it, by the kernel, all of its namespace.
func (p *containerProcess) kill() {
	p.asked.Store(true)
	select {
	case <-p.done: // the pid may be somebody else's by now
	default:
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// spawner is the one thread that starts containers: the kernel's parent-death
// signal is sent when the starting thread ends, not the process.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

func spawn(start func() error) error {
	done := make(chan error, 1)
	spawner() <- func() { done <- start() }
	return <-done
}
