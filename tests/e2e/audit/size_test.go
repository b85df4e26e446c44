package audit_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

const (
	// longest is how long a sweep over 10,000 objects may take.
	longest = 30 * time.Second
	// most is what the auditing process may hold meanwhile, in MiB.
	most = 64
	// patience is how long a condition may take to come true on a busy machine.
	patience = 4 * time.Minute
)

// Many objects are audited in bounded time and memory; nothing is written as
// long as nothing changes, by a process that starts anew neither. In full, with
// 10,000 objects, where RAYFIT_LONG is set; a release build is held to its bounds.
func TestManyObjectsAreAuditedWithoutAWriteInVain(t *testing.T) {
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	count, strict := 200, false
	if os.Getenv("RAYFIT_LONG") != "" {
		// What a build with checks and debugging information needs is no measure.
		count, strict = 10_000, filepath.Base(filepath.Dir(binary)) == "release"
	}
	l := startLab(t)
	begin := time.Now()
	write(t, l, count)
	t.Logf("%d objects written in %s", count, time.Since(begin).Round(time.Second))
	apply(t, l, "{apiVersion: rayfit.dev/v1alpha1, kind: RayPolicy, metadata: {name: every}, spec: {mode: Warn}}")
	apply(t, l, "{apiVersion: rayfit.dev/v1alpha1, kind: RayPolicy, metadata: {name: one}, spec: {priority: 1, mode: Enforce, match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-0}}}}}")

	server := serve(t, l, "--no-controller")
	figures := watched{t, l, server, strict}
	first := figures.sweep("the first sweep", 0, count)
	quiet(t, l, count)
	figures.memory("with everything written")

	before := writes(t, l)
	apply(t, l, "{apiVersion: v1, kind: Namespace, metadata: {name: another}}")
	figures.sweep("a sweep in which nothing has changed", first, count)
	figures.memory("after it")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	figures.server = serve(t, l, "--no-controller")
	figures.sweep("the first sweep of another process", 0, count)
	settled(t, l)
	figures.memory("of that process")
	if vain := writes(t, l)[len(before):]; len(vain) > 0 {
		t.Errorf("written %d times although nothing has changed, at first: %s", len(vain), vain[0])
	}
	if err := figures.server.Stop(); err != nil {
		t.Fatal(err)
	}
	// What scaling keeps of the same clusters is another matter, and shown only.
	figures.server, figures.strict = serve(t, l), false
	figures.sweep("a sweep of a process that scales too", 0, count)
	figures.memory("of that process")
}

// watched is a process whose sweeps are measured.
type watched struct {
	t      *testing.T
	lab    *lab.Lab
	server *rig.Server
	strict bool // fail if it takes more than it may
}

// sweep waits until a sweep has ended that took another time than the last one.
func (w *watched) sweep(what string, last float64, count int) float64 {
	w.t.Helper()
	var took float64
	labtest.Eventually(w.t, patience, what, func() error {
		metrics, err := w.server.Metrics(w.t.Context())
		if err != nil {
			return err
		}
		took = metrics.Sum("rayfit_audit_sweep_seconds")
		if objects := metrics.Sum("rayfit_audit_objects"); took == last || int(objects) != count {
			return fmt.Errorf("%v objects, the last sweep took %v s", objects, took)
		}
		return nil
	})
	w.t.Logf("%s took %.1f s", what, took)
	if w.strict && took > longest.Seconds() {
		w.t.Errorf("%s took %.1f s, more than %s", what, took, longest)
	}
	return took
}

func (w *watched) memory(when string) {
	w.t.Helper()
	pid := w.lab.PID(w.server.Name)
	now, err := rig.Memory(pid, "VmRSS")
	if err != nil {
		w.t.Fatal(err)
	}
	peak, err := rig.Memory(pid, "VmHWM")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("%s: %.1f MiB, at most %.1f MiB", when, now, peak)
	if w.strict && peak > most {
		w.t.Errorf("%s the process has held %.1f MiB, more than %d", when, peak, most)
	}
}

// quiet waits until each faulty object has a report and both policies count.
func quiet(t *testing.T, l *lab.Lab, count int) {
	t.Helper()
	labtest.Eventually(t, patience, "reports and statuses are written", func() error {
		stdout, _, err := l.Kubectl("get", "rayp", "every", "-o", "jsonpath={.status.objects} {.status.denied}")
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%d %d", count, count/teams); stdout != want {
			return fmt.Errorf("policy every counts %q and not %q", stdout, want)
		}
		stdout, _, err = l.Kubectl("get", "--raw", "/apis/openreports.io/v1alpha1/reports?limit=1")
		if err != nil {
			return err
		}
		var list struct {
			Items    []any
			Metadata struct{ RemainingItemCount int }
		}
		if err := json.Unmarshal([]byte(stdout), &list); err != nil {
			return err
		}
		if reports := len(list.Items) + list.Metadata.RemainingItemCount; reports < count/5 {
			return fmt.Errorf("%d reports for %d faulty objects", reports, count/5)
		}
		return nil
	})
	settled(t, l)
}

// settled waits until no more is written: the audit gathers changes for a second.
func settled(t *testing.T, l *lab.Lab) {
	t.Helper()
	since, last := time.Now(), -1
	labtest.Eventually(t, patience, "no more is written", func() error {
		if now := len(writes(t, l)); now != last {
			since, last = time.Now(), now
		}
		if quiet := time.Since(since); quiet < 3*time.Second {
			return fmt.Errorf("the last of %d writes was %s ago", last, quiet.Round(time.Second))
		}
		return nil
	})
}

// writes are the requests of the auditing process that change anything but its
// Lease.
func writes(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	file, err := os.Open(l.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        struct{ Resource string }
		}
		// The last line may still be being written.
		if !strings.Contains(lines.Text(), auditor) || json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		reads := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
		if event.User.Username == auditor && !reads && event.ObjectRef.Resource != "leases" {
			found = append(found, event.Verb+" "+event.RequestURI)
		}
	}
	return found
}
