package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

// results are the outcomes of the last run of each test, kept in a file, so that
// suites and modes can be run one after the other.
type results struct {
	file string
	// commit is what is tried now.
	commit string
	// Of a suite, its tests, the modes, and their cases.
	Of map[string]map[string]map[scaling.Mode]map[string]outcome
}

func load(folder string) (*results, error) {
	r := &results{file: filepath.Join(folder, "results.json"), Of: map[string]map[string]map[scaling.Mode]map[string]outcome{}}
	raw, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read earlier results: %w", err)
	}
	if err := json.Unmarshal(raw, &r.Of); err != nil {
		return nil, fmt.Errorf("read earlier results in %s: %w", r.file, err)
	}
	return r, nil
}

// add notes how the cases of a test have ended.
func (r *results) add(suite, test string, mode scaling.Mode, cases map[string]outcome) error {
	if r.Of[suite] == nil {
		r.Of[suite] = map[string]map[scaling.Mode]map[string]outcome{}
	}
	if r.Of[suite][test] == nil {
		r.Of[suite][test] = map[scaling.Mode]map[string]outcome{}
	}
	for name, end := range cases {
		end.Commit = r.commit
		cases[name] = end
	}
	r.Of[suite][test][mode] = cases
	raw, err := json.MarshalIndent(r.Of, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(r.file, raw, 0o644); err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	return nil
}

// commits are those that the results are from.
func (r *results) commits() []string {
	var found []string
	for _, tests := range r.Of {
		for _, modes := range tests {
			for _, cases := range modes {
				for _, end := range cases {
					found = append(found, end.Commit)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// table has a row for each test that has been run.
func (r *results) table() tables.Table {
	t := tables.Table{{"test", "Ray's autoscaler", "central", "sidecar"}}
	for _, suite := range slices.Sorted(maps.Keys(r.Of)) {
		for _, test := range slices.Sorted(maps.Keys(r.Of[suite])) {
			row := []string{suite + " " + test}
			for _, mode := range order {
				row = append(row, cell(r.Of[suite][test][mode]))
			}
			t = append(t, row)
		}
	}
	return t
}

// cell says how many cases of a test pass.
func cell(cases map[string]outcome) string {
	if len(cases) == 0 {
		return "not run"
	}
	passed, skipped := 0, 0
	for _, o := range cases {
		switch o.Word {
		case "pass":
			passed++
		case "skip":
			skipped++
		}
	}
	if skipped == len(cases) {
		return "skips itself"
	}
	return fmt.Sprintf("%d of %d", passed, len(cases)-skipped)
}

// page is the table, and why tests fail or are not run.
func (r *results) page() string {
	var text strings.Builder
	fmt.Fprintf(&text, "KubeRay %s, Ray %s, %s; how many cases of each test pass.\n\n%s",
		lab.KubeRayVersion, lab.RayVersion, strings.Join(r.commits(), ", "), r.table().Markdown())
	for _, a := range applications {
		if a.why != "" {
			fmt.Fprintf(&text, "\nWith the newest version of their Serve application, at the address of an older one, because %s: %s.\n", a.why, strings.Join(a.tests, ", "))
		}
	}
	for _, one := range []struct {
		title   string
		remarks []remark
	}{{"Not run:", left}, {"May fail with any autoscaler:", known}} {
		if len(one.remarks) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n%s\n\n", one.title)
		for _, m := range grouped(one.remarks) {
			fmt.Fprintf(&text, "- %s: %s.\n", m.test, m.why)
		}
	}
	return text.String()
}

// grouped has one remark for all tests with the same reason.
func grouped(remarks []remark) []remark {
	var groups []remark
	for _, r := range remarks {
		name := strings.TrimSpace(r.suite + " " + r.test)
		i := slices.IndexFunc(groups, func(g remark) bool { return g.why == r.why })
		if i < 0 {
			groups = append(groups, remark{r.suite, name, r.why})
			continue
		}
		if groups[i].suite == r.suite {
			name = r.test
		}
		groups[i].test += ", " + name
	}
	return groups
}

// verdict is an error that names what fails without being known to.
func (r *results) verdict() error {
	var failed []string
	for _, suite := range slices.Sorted(maps.Keys(r.Of)) {
		for _, test := range slices.Sorted(maps.Keys(r.Of[suite])) {
			for _, mode := range order {
				for _, name := range slices.Sorted(maps.Keys(r.Of[suite][test][mode])) {
					if r.Of[suite][test][mode][name].Word == "fail" && why(known, suite, name) == "" {
						failed = append(failed, fmt.Sprintf("%s %s, %s", suite, name, mode))
					}
				}
			}
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these fail:\n  %s", strings.Join(failed, "\n  "))
	}
	return nil
}
