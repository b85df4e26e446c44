// Command suite runs the tests in Go as a set that is too long for one answer:
//
//	suite short  what `make test` runs; sets.go says what that is
//	suite rest   everything else, and nothing of that
//	suite all    both
//
// It tells each test as it ends, with the time, and all that a failed one has
// printed. After `short` it lists what is left out. With --times FILE each
// package is noted there with its seconds, for the table of scripts/test.sh.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const module = "rayfit.dev/rayfit/tests"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	times := flag.String("times", "", "a file to note each package in")
	flag.Parse()
	set := flag.Arg(0)
	if flag.NArg() != 1 || set != "short" && set != "rest" && set != "all" {
		return errors.New("name one set: short, rest or all")
	}
	folders, err := packages(ctx)
	if err != nil {
		return err
	}
	left, err := leftOut(folders)
	if err != nil {
		return err
	}
	s := &stage{out: os.Stdout, begin: time.Now()}
	atOnce := runtime.GOMAXPROCS(0)
	if set != "short" {
		atOnce++ // since labs wait now and then, and no Rust is tested beside them
	}
	failed := s.perform(ctx, jobs(set, folders), atOnce)
	if err := s.note(*times); err != nil {
		return err
	}
	if set == "short" {
		fmt.Printf("left to `make test-all`:\n%s", left)
	}
	if len(failed) > 0 {
		// Last, where whoever looks at the end of a long log finds it.
		fmt.Printf("what has failed, and why:\n%s\n", strings.Join(reasons(failed), "\n"))
		return fmt.Errorf("failed: %s", strings.Join(names(failed), ", "))
	}
	return nil
}

// packages are the folders of all packages that have tests.
func packages(ctx context.Context) ([]string, error) {
	listed, err := command(ctx, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, path := range strings.Fields(listed) {
		folders = append(folders, strings.TrimPrefix(path, module+"/"))
	}
	return folders, nil
}

func command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var said, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, said.String(), complaint.String())
	}
	return said.String(), nil
}

// stage is where the tests are performed.
type stage struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
	ended []ended
}

// ended is a job whose tests have run.
type ended struct {
	name   string
	took   time.Duration
	failed bool
}

// perform runs the jobs, so many at a time, and returns what has failed.
func (s *stage) perform(ctx context.Context, all []job, atOnce int) []failure {
	next := make(chan job)
	go func() {
		defer close(next)
		for _, one := range all {
			next <- one
		}
	}()
	var failed []failure
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for one := range next {
				begin := time.Now()
				found, err := s.test(ctx, one)
				s.end(one, time.Since(begin), err)
				if err == nil {
					continue
				}
				if len(found) == 0 {
					found = []failure{{job: one}}
				}
				s.mu.Lock()
				failed = append(failed, found...)
				s.mu.Unlock()
			}
		})
	}
	workers.Wait()
	return failed
}

func (s *stage) end(one job, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := "ok"
	if err != nil {
		word = "FAILED"
	}
	fmt.Fprintf(s.out, "%s  %-6s %s: all of it, %s\n", s.clock(), word, one.name(), took.Round(100*time.Millisecond))
	s.ended = append(s.ended, ended{one.name(), took, err != nil})
}

// clock is for how long everything has been going on.
func (s *stage) clock() string {
	gone := time.Since(s.begin)
	return fmt.Sprintf("%3d:%02d", int(gone.Minutes()), int(gone.Seconds())%60)
}

// test runs the tests of a job, and returns those that have failed.
func (s *stage) test(ctx context.Context, one job) ([]failure, error) {
	// The longest package takes half as long where nothing else runs.
	args := []string{"test", "-json", "-count=1", "-timeout=75m"}
	if one.run != "" {
		args = append(args, "-run="+one.run)
	}
	if one.skip != "" {
		args = append(args, "-skip="+one.skip)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+one.folder)...)
	// The tests too, and not only who started them. Labs end with their tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	told := newPackageOutput(s, one)
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadBytes('\n')
		told.line(line)
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	if err == nil && len(told.failed) > 0 {
		err = errors.New("a test was skipped")
	}
	if err == nil && told.passed == 0 {
		err = errors.New("no test has run")
		s.print("no test of %s has run: is it still called so in tests/suite/sets.go?\n", one.name())
	}
	if err != nil {
		told.rest()
	}
	return told.failed, err
}

func (s *stage) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

// note adds the packages to a file, one a line: name, seconds, ok or FAILED.
func (s *stage) note(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("note the times: %w", err)
	}
	defer file.Close()
	for _, one := range s.ended {
		word := "ok"
		if one.failed {
			word = "FAILED"
		}
		fmt.Fprintf(file, "  %s\t%d\t%s\n", one.name, int(one.took.Seconds()+0.5), word)
	}
	return nil
}
