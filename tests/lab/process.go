package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a component may take to end after SIGTERM, and again
// after SIGKILL.
const stopTimeout = 30 * time.Second

// process is one component's process. It is stored as run/<name>.json, so that
// another invocation of the command can look at it and end it.
type process struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start string   `json:"start"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env,omitempty"`
}

// endedError says that a component ended while it was needed.
type endedError struct {
	name, log, tail string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("%s ended; the end of %s:\n%s", e.name, e.log, e.tail)
}

func (p process) alive() bool {
	start, alive := startTime(p.PID)
	return alive && start == p.Start
}

func (l *Lab) runFile(name string) string { return l.path("run", name+".json") }

// LogFile is where a component's output goes.
func (l *Lab) LogFile(component string) string { return l.path("logs", component+".log") }

// Logs returns what a component has written so far.
func (l *Lab) Logs(component string) (string, error) {
	raw, err := os.ReadFile(l.LogFile(component))
	if err != nil {
		return "", fmt.Errorf("read the log of %s (components: %s): %w", component, strings.Join(l.Components(), ", "), err)
	}
	return string(raw), nil
}

// start runs a component in a process group of its own, its output in its log.
func (l *Lab) start(name string, argv, env []string, files ...*os.File) error {
	log, err := os.OpenFile(l.LogFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = l.Dir()
	cmd.Env = l.environment(env)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := spawn(cmd, !l.options.Detach); err != nil {
		return fmt.Errorf("start %s (%s): %w", name, argv[0], err)
	}
	// Reap the child, so that it does not look alive as a zombie.
	go func() { _ = cmd.Wait() }()
	start, _ := startTime(cmd.Process.Pid)
	p := process{Name: name, PID: cmd.Process.Pid, Start: start, Argv: argv, Env: env}
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", name, err)
	}
	if err := os.WriteFile(l.runFile(name), raw, 0o644); err != nil {
		return fmt.Errorf("write the record of %s: %w", name, err)
	}
	return nil
}

// Run starts a process of the caller's own beside the lab's components: its
// output is in LogFile(name), and it does not outlive the lab.
func (l *Lab) Run(name string, argv ...string) error { return l.start(name, argv, nil) }

// End ends what Run started: SIGTERM, and SIGKILL after the grace period.
func (l *Lab) End(name string, grace time.Duration) error { return l.stop(grace, name) }

// environment is what components see of ours: enough to run, nothing that
// would make them talk to another cluster or through a proxy.
func (l *Lab) environment(extra []string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + l.path("home"),
		"TMPDIR=" + l.path("tmp"),
		"LANG=C.UTF-8",
		markerVariable + "=" + l.Dir(),
	}
	return append(env, extra...)
}

// spawner is the one thread that starts components which must die with us: the
// kernel sends the parent-death signal when the starting thread ends, and Go
// ends threads as it likes unless a goroutine stays locked to one.
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

func spawn(cmd *exec.Cmd, dieWithParent bool) error {
	if !dieWithParent {
		return cmd.Start()
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	spawner() <- func() { done <- cmd.Start() }
	return <-done
}

// component reads the record of a started component.
func (l *Lab) component(name string) (process, error) {
	var p process
	raw, err := os.ReadFile(l.runFile(name))
	if err != nil {
		return p, fmt.Errorf("component %s was not started in %s: %w", name, l.Dir(), err)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("read the record of %s: %w", name, err)
	}
	return p, nil
}

// Components are the names of all components that have been started.
func (l *Lab) Components() []string {
	files, _ := filepath.Glob(l.runFile("*"))
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// Running says whether a component's process is alive.
func (l *Lab) Running(component string) bool {
	p, err := l.component(component)
	return err == nil && p.alive()
}

// PID is the process id of a component, 0 if it does not run: benchmarks read
// CPU time and memory with it.
func (l *Lab) PID(component string) int {
	if p, err := l.component(component); err == nil && p.alive() {
		return p.PID
	}
	return 0
}

// ended reports a component that should be running and is not.
func (l *Lab) ended(name string) error {
	if l.Running(name) {
		return nil
	}
	log, _ := l.Logs(name)
	return &endedError{name: name, log: l.LogFile(name), tail: tail(log, 15)}
}

// stop ends components together: SIGTERM, then SIGKILL for what is left.
func (l *Lab) stop(grace time.Duration, names ...string) error {
	var running []process
	for _, name := range names {
		if p, err := l.component(name); err == nil && p.alive() {
			running = append(running, p)
			_ = syscall.Kill(-p.PID, syscall.SIGTERM)
		}
	}
	if !waitUntil(grace, func() bool { return !anyAlive(running) }) {
		for _, p := range running {
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		}
		if !waitUntil(stopTimeout, func() bool { return !anyAlive(running) }) {
			return fmt.Errorf("some of %s do not end on SIGKILL: look at %s", strings.Join(names, ", "), l.path("run"))
		}
	}
	for _, name := range names {
		if err := os.Remove(l.runFile(name)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove the record of %s: %w", name, err)
		}
	}
	return nil
}

func anyAlive(processes []process) bool {
	for _, p := range processes {
		if p.alive() {
			return true
		}
	}
	return false
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
