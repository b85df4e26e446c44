package policy_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// openReports is the module that defines the API of reports; sum is what Go's
// checksum database says of it.
const (
	openReports = "github.com/openreports/reports-api@v0.2.1"
	sum         = "h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680="
)

// installReports installs OpenReports' own definition until the test ends.
func installReports(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", openReports)
	cmd.Dir = t.TempDir() // out of this module, which does not need it to build
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download %s: %v: %s", openReports, err, out)
	}
	var module struct{ Dir, Sum string }
	decode(t, string(out), &module)
	if module.Sum != sum {
		t.Fatalf("%s has the sum %s, want %s", openReports, module.Sum, sum)
	}
	definition, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "openreports.io_reports.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := shared.Lab.Apply(string(definition)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, "delete", "crd", "reports.openreports.io") })
	must(t, "wait", "crd/reports.openreports.io", "--for=condition=Established")
}

// report is what tests look at in a report.
type report struct {
	Metadata struct {
		Name, ResourceVersion string
		OwnerReferences       []struct{ Kind, Name string }
	}
	Scope   struct{ Kind, Name string }
	Summary map[string]int
	Results []struct{ Policy, Rule, Result, Message string }
}

func reports(t *testing.T, namespace string) map[string]report {
	t.Helper()
	var list struct{ Items []report }
	decode(t, must(t, "get", "reports.openreports.io", "-n", namespace, "-o", "json"), &list)
	found := map[string]report{}
	for _, item := range list.Items {
		found[item.Metadata.Name] = item
	}
	return found
}

// reported waits for exactly these reports.
func reported(t *testing.T, namespace string, names ...string) (found map[string]report) {
	t.Helper()
	labtest.Eventually(t, patience, "wait for the reports "+strings.Join(names, ", "), func() error {
		found = reports(t, namespace)
		for _, name := range names {
			if _, ok := found[name]; !ok {
				return fmt.Errorf("%s is not there: %v", name, found)
			}
		}
		if len(found) != len(names) {
			return fmt.Errorf("there are %d: %v", len(found), found)
		}
		return nil
	})
	return found
}

func TestEachObjectWithFindingsHasAReportWhereThatAPIIs(t *testing.T) {
	ns := namespace(t, "reported")
	policy(t, "reporting", "{mode: Audit}")
	labtest.Eventually(t, patience, "wait until the policy is in force", func() error { return is(comesTo(faulty(ns, "probe")), "silent") })
	for _, object := range stock(ns, "") {
		store(t, object)
	}
	// Without the API all else goes on.
	audits(t, "reporting", 0, 0)

	installReports(t)
	// Whoever installs the API later gets reports with the next sweep.
	change(t, "reporting", `{"priority":1}`)
	const bad, risky, noted = "rayfit-raycluster-bad", "rayfit-raycluster-risky", "rayfit-raycluster-noted"
	first := reported(t, ns, bad, risky, noted)
	of := first[bad]
	if of.Scope.Name != "bad" || len(of.Metadata.OwnerReferences) != 1 || of.Metadata.OwnerReferences[0].Name != "bad" {
		t.Errorf("the report is about %+v and belongs to %+v", of.Scope, of.Metadata.OwnerReferences)
	}
	if len(of.Results) != 1 || of.Results[0].Rule != "RF201" || of.Results[0].Policy != "reporting" || of.Results[0].Result != "warn" || of.Summary["warn"] != 1 {
		t.Errorf("it says %+v, in sum %v", of.Results, of.Summary)
	}

	// Only what has changed is written.
	change(t, "reporting", `{"rules":{"RF201":"Enforce"}}`)
	labtest.Eventually(t, patience, "wait until the report of the bad one is of a failure", func() error {
		return is(fmt.Sprint(reports(t, ns)[bad].Summary["fail"]), "1")
	})
	second := reported(t, ns, bad, risky, noted)
	for _, name := range []string{risky, noted} {
		if before, after := first[name].Metadata.ResourceVersion, second[name].Metadata.ResourceVersion; before != after {
			t.Errorf("%s was written again: %s, %s", name, before, after)
		}
	}

	mend := rig.Object{}.Set("spec", stock(ns, "")[3]["spec"])
	if _, err := shared.Lab.Request(t.Context(), http.MethodPatch, collection(faulty(ns, ""))+"/bad", mend.JSON()); err != nil {
		t.Fatal(err)
	}
	reported(t, ns, risky, noted)
	must(t, "delete", "raycluster", "risky", "-n", ns)
	reported(t, ns, noted)
}
