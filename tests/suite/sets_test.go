package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// every is the folders of all packages, and their tests.
func every(t *testing.T) (folders []string, tests map[string][]string) {
	t.Helper()
	t.Chdir("..")
	folders, err := packages(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	tests = map[string][]string{}
	for _, folder := range folders {
		if tests[folder], err = testsOf(folder); err != nil {
			t.Fatal(err)
		}
	}
	return folders, tests
}

func TestEachTestIsInOneOfTheTwoSets(t *testing.T) {
	folders, tests := every(t)
	if len(folders) < 15 || len(tests["e2e/scaling"]) < 15 {
		t.Fatalf("too few packages or tests are found: %v", tests)
	}
	type place struct{ wholly, partly int }
	found := map[string]place{}
	for _, set := range []string{"short", "rest"} {
		for _, one := range jobs(set, folders) {
			for _, test := range tests[one.folder] {
				at := found[one.folder+" "+test]
				switch wholly, partly := one.admits(test); {
				case wholly:
					at.wholly++
				case partly:
					at.partly++
				}
				found[one.folder+" "+test] = at
			}
		}
	}
	for _, folder := range folders {
		if slices.Contains(long, folder) {
			continue
		}
		for _, test := range tests[folder] {
			at := found[folder+" "+test]
			if left, _ := matches(slow, test); left {
				if folder != "e2e/scaling" || at != (place{}) {
					t.Errorf("%s %s is left to the long tests, and in %v", folder, test, at)
				}
			} else if at != (place{wholly: 1}) && at != (place{partly: 2}) {
				t.Errorf("%s %s: in %d sets with all of it, in %d with a part", folder, test, at.wholly, at.partly)
			}
		}
	}
}

// Who renames a test must not lose it.
func TestWhatTheShortSetNamesIsThere(t *testing.T) {
	folders, tests := every(t)
	for _, c := range chosen {
		if !slices.Contains(folders, c.folder) {
			t.Errorf("there is no package %s", c.folder)
		}
		for _, part := range append(alternatives(c.short.run), alternatives(c.short.skip)...) {
			if part != "" && !slices.ContainsFunc(tests[c.folder], func(test string) bool {
				about, _ := matches(part, test)
				return about
			}) {
				t.Errorf("%s: no test is called %s", c.folder, part)
			}
		}
	}
}

var (
	body  = regexp.MustCompile(`(?ms)^func (Test\w+)\(\w+ \*testing\.T\) \{$.*?^\}$`)
	start = regexp.MustCompile(`\bstart\(t, |\blab\.Start\(|\blabtest\.(Start|New)\(`)
)

// The lab's own tests that start one take longer than all of its others.
func TestTheLabsOwnTestsThatStartOneAreLeftToTheRest(t *testing.T) {
	t.Chdir("..")
	files, err := filepath.Glob("lab/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range body.FindAllSubmatch(text, -1) {
			if !start.Match(test[0]) {
				continue
			}
			found++
			if left, _ := matches(needLab, string(test[1])); !left {
				t.Errorf("%s: %s starts a lab: name it in needLab", file, test[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d tests that start a lab are found", found)
	}
}

func TestAFailureIsReportedByItsAssertions(t *testing.T) {
	s := &stage{out: &strings.Builder{}}
	told := newPackageOutput(s, job{folder: "e2e/install"})
	for _, output := range []string{
		"=== RUN   TestStop\n",
		"    load_test.go:67: reviews: 3 calls failed\n",
		"        18s   Normal   Pulled   pod/rayfit\n",
		"    load_test.go:70: " + strings.Repeat("long ", 200) + "\n",
	} {
		line, err := json.Marshal(event{Action: "output", Test: "TestStop", Output: output})
		if err != nil {
			t.Fatal(err)
		}
		told.line(line)
	}
	told.line([]byte(`{"Action":"fail","Test":"TestStop"}`))
	if len(told.failed) != 1 {
		t.Fatalf("failed: %v", told.failed)
	}
	lines := strings.Split(told.failed[0].told(), "\n")
	if len(lines) != 3 || lines[0] != "e2e/install TestStop" ||
		lines[1] != "    load_test.go:67: reviews: 3 calls failed" ||
		len(lines[2]) > 410 || !strings.HasSuffix(lines[2], " ...") {
		t.Errorf("told %q", lines)
	}
}

// inPackage makes a module with one package, long, the folder that the test is in.
func inPackage(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("long", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module long\n", "long/long_test.go": text} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A failed job names its failed tests, and nothing that has passed.
func TestAFailureNamesTheTestsThatFailed(t *testing.T) {
	inPackage(t, `package long
		import "testing"
		func TestBroken(t *testing.T) { t.Error("each time") }
		func TestFine(t *testing.T) {}`)
	var said strings.Builder
	s := &stage{out: &said}
	failed := s.perform(t.Context(), []job{{folder: "long"}}, 1)
	if want := []string{"long TestBroken"}; !slices.Equal(names(failed), want) || !strings.Contains(failed[0].told(), "each time") {
		t.Errorf("%v failed instead of %v, and said:\n%s", names(failed), want, &said)
	}
}
