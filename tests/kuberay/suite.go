package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// suite is one of KubeRay's: a program, the folder that it runs in, and its tests.
type suite struct {
	name, binary, folder string
	tests                []string
}

func openSuite(ctx context.Context, name string) (*suite, error) {
	binary, folder, err := lab.Suite(ctx, name, os.Stderr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "-test.list", ".")
	cmd.Dir = folder
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", name, err)
	}
	return &suite{name, binary, folder, strings.Fields(string(said))}, nil
}

// runSuite runs a suite's tests, some at the same time: most of the time they wait
// for something to become idle.
func (o *options) runSuite(ctx context.Context, l *lab.Lab, s *suite, mode scaling.Mode, found *results) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read the pattern of tests: %w", err)
	}
	environment := o.environment(l, s, mode)
	if err := os.MkdirAll(o.podLogs(s, mode), 0o755); err != nil {
		return fmt.Errorf("make a folder for the logs of pods: %w", err)
	}
	tests := slices.DeleteFunc(longestFirst(s.tests), func(test string) bool {
		return !only.MatchString(test) || leftOut(s.name, test) != "" || slices.Contains(o.without, test)
	})
	var running sync.WaitGroup
	seats := make(chan struct{}, o.atOnce)
	var mu sync.Mutex
	var failed error
	ended := 0
	for _, test := range tests {
		seats <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-seats }()
			cases, err := o.runTest(ctx, s, test, mode, environment)
			mu.Lock()
			defer mu.Unlock()
			ended++
			fmt.Fprintf(o.progress, "%s  %s: %d of %d tests of %s have ended\n", clock(), mode, ended, len(tests), s.name)
			if err == nil {
				err = found.add(s.name, test, mode, cases)
			}
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	running.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

func (o *options) podLogs(s *suite, mode scaling.Mode) string {
	return filepath.Join(o.folder, "pods-"+string(mode), s.name)
}

// environment is what the tests are told, by the variables that they have for it.
func (o *options) environment(l *lab.Lab, s *suite, mode scaling.Mode) []string {
	return append(os.Environ(),
		"KUBECONFIG="+l.Kubeconfig(),
		"PATH="+filepath.Join(l.Dir(), "bin")+":"+os.Getenv("PATH"),
		"KUBERAY_TEST_RAY_VERSION="+lab.RayVersion,
		"KUBERAY_TEST_RAY_IMAGE=rayproject/ray:"+lab.RayVersion,
		"KUBERAY_TEST_OUTPUT_DIR="+o.podLogs(s, mode),
		// Several times the usual, for two cores. The operator gives Ray's dashboard two
		// seconds for an answer, and after some failures it waits for minutes itself.
		"KUBERAY_TEST_TIMEOUT_SHORT=5m",
		"KUBERAY_TEST_TIMEOUT_MEDIUM=15m",
		"KUBERAY_TEST_TIMEOUT_LONG=20m",
	)
}

// outcome is how one case of a test has ended.
type outcome struct {
	// Word is pass, fail or skip.
	Word    string
	Seconds float64
	// Commit is what was tried: the results of a page may be those of several runs.
	Commit string `json:",omitempty"`
	// Said is the end of what a case that has failed has printed.
	Said string `json:",omitempty"`
}

// event is a line of `go tool test2json`, as far as it is read.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// runTest runs a test of a suite, and returns how its cases have ended, by name:
// the test itself if it has none.
func (o *options) runTest(ctx context.Context, s *suite, test string, mode scaling.Mode, environment []string) (map[string]outcome, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", s.binary,
		"-test.v=test2json", "-test.timeout=60m", "-test.run=^"+test+"$", "-test.skip="+casesLeftOut(s.name, test))
	cmd.Dir, cmd.Env, cmd.Stderr = s.folder, environment, os.Stderr
	// `go tool` does not end what it has begun, and reading goes on until all of it has ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read what %s says: %w", test, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", test, err)
	}
	tell := func(name string, end outcome) {
		fmt.Fprintf(o.progress, "%s  %-7s %-4s %s %s, %.0f s\n%s", clock(), mode, end.Word, s.name, name, end.Seconds, indented(end.Said))
	}
	cases := readEvents(bufio.NewScanner(output), tell)
	// That a test fails is no error here.
	_ = cmd.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s of %s has said nothing: run %s -test.run %s", test, s.name, s.binary, test)
	}
	return cases, nil
}

// readEvents collects the outcomes of cases; of a test with cases in it, theirs.
func readEvents(lines *bufio.Scanner, tell func(string, outcome)) map[string]outcome {
	lines.Buffer(nil, 16<<20)
	cases := map[string]outcome{}
	said := map[string][]string{}
	add := func(test string, end outcome) {
		if end.Word == "fail" {
			end.Said = tail(said[test])
			// Cases may write into the log of the test around them.
			if around, _, isCase := strings.Cut(test, "/"); isCase {
				end.Said = tail(said[around]) + end.Said
			}
		}
		delete(said, test)
		if !hasCases(cases, test) {
			cases[test] = end
			tell(test, end)
		}
	}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			said[e.Test] = []string{}
		case "output":
			said[e.Test] = append(said[e.Test], e.Output)
		case "pass", "fail", "skip":
			add(e.Test, outcome{Word: e.Action, Seconds: e.Elapsed})
		}
	}
	// What has begun and not ended has failed: its program was killed. A case is
	// behind its test in this order.
	for _, test := range slices.Backward(slices.Sorted(maps.Keys(said))) {
		add(test, outcome{Word: "fail"})
	}
	return cases
}

func hasCases(cases map[string]outcome, test string) bool {
	for name := range cases {
		if strings.HasPrefix(name, test+"/") {
			return true
		}
	}
	return false
}

// tail is the end of what a test has printed, without the logs that it collects.
func tail(output []string) string {
	const most, longest = 40, 400
	var kept []string
	for _, line := range output {
		if !strings.Contains(line, "Retrieving Pod Container") {
			if len(line) > longest {
				line = strings.ToValidUTF8(line[:longest], "") + " ...\n"
			}
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-most):], "")
}

func clock() string { return time.Now().Format(time.TimeOnly) }

func indented(text string) string {
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
