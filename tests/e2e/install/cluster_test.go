package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

const (
	system = "rayfit-system" // the namespace of an install
	team   = "team-a"        // the namespace that Ray objects are written to
	host   = "rayfit." + system + ".svc"
)

var shared struct {
	sync.Once
	lab *lab.Lab
	end func() error
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		if err := shared.end(); err != nil {
			fmt.Fprintln(os.Stderr, "end the lab:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// binary is the Rayfit under test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cluster is the lab that all tests share; it has one node and cert-manager.
func cluster(t *testing.T) *lab.Lab {
	t.Helper()
	path := binary(t)
	shared.Do(func() {
		shared.lab, shared.end, shared.err = labtest.New(t.Context(), lab.Options{
			Nodes: 1, Cores: 16, Memory: "32Gi",
			With: []string{lab.WithCertManager}, RayfitBinary: path,
		})
		if shared.err == nil {
			_, _, shared.err = shared.lab.Kubectl("create", "namespace", team)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.lab
}

// rayfit runs the binary and returns its standard output.
func rayfit(t *testing.T, args ...string) string {
	t.Helper()
	stdout, err := rig.Output(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

// install applies manifests, waits until they work, and uninstalls with the test.
func install(t *testing.T, l *lab.Lab, manifests string) {
	t.Helper()
	removeAfter(t, l, manifests)
	if _, stderr, err := l.Apply(manifests); err != nil || stderr != "" {
		t.Fatalf("kubectl apply: %v, and it warns: %q", err, stderr)
	}
	rolledOut(t, l)
	trusted(t, l)
}

// removeAfter uninstalls with the test. The replicas are ended at once: that they
// end well is tested where it matters, and a namespace waits for all the time
// that its pods may take.
func removeAfter(t *testing.T, l *lab.Lab, manifests string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			keepLogs(t, l)
		}
		labtest.Kubectl(t, l, "delete", "deployments", "--all", "-n", system, "--cascade=orphan")
		labtest.Kubectl(t, l, "delete", "replicasets,pods", "--all", "-n", system, "--force", "--grace-period=0")
		uninstall(t, l, manifests)
	})
}

// uninstall does what the command line's help says.
func uninstall(t *testing.T, l *lab.Lab, manifests string) {
	t.Helper()
	if out, err := kubectlWith(l, manifests, "delete", "--ignore-not-found", "-f", "-"); err != nil {
		t.Errorf("uninstall: %v: %s", err, out)
	}
}

// kubectlWith runs kubectl with standard input and returns all that it says.
func kubectlWith(l *lab.Lab, input string, args ...string) (string, error) {
	cmd := l.KubectlCommand(context.Background(), args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// rolledOut waits until all Deployments of an install run.
func rolledOut(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, deployment := range strings.Fields(labtest.Kubectl(t, l, "get", "deployments", "-n", system, "-o", "name")) {
		labtest.Kubectl(t, l, "rollout", "status", deployment, "-n", system, "--timeout=120s")
	}
}

// trusted waits until the API server gets an answer from the webhooks: each
// webhook has a bundle, and a create is defaulted.
func trusted(t *testing.T, l *lab.Lab) {
	t.Helper()
	labtest.Eventually(t, time.Minute, "the API server trusts the webhooks", func() error {
		// One for each kind of Ray object; policies and resizes are only judged, not filled in.
		for kind, count := range map[string]int{"mutating": 4, "validating": 6} {
			bundles, _, err := l.Kubectl("get", kind+"webhookconfiguration", "rayfit-"+kind, "-o", `jsonpath={range .webhooks[*]}{.clientConfig.caBundle}{"\n"}{end}`)
			if lines := strings.Fields(bundles); err != nil || len(lines) != count {
				return fmt.Errorf("%d of %d %s webhooks have a caBundle (%w)", len(lines), count, kind, err)
			}
		}
		return create(t.Context(), l, goodCluster(t))
	})
}

// keepLogs shows what the replicas said, since an uninstall takes it away.
func keepLogs(t *testing.T, l *lab.Lab) {
	t.Helper()
	stdout, stderr, _ := l.Kubectl("logs", "-n", system, "-l", "app.kubernetes.io/name=rayfit", "--prefix", "--tail=60")
	t.Logf("the replicas' logs:\n%s%s", stdout, stderr)
	stdout, _, _ = l.Kubectl("get", "pods,events", "-n", system, "-o", "wide")
	t.Logf("%s", stdout)
}

// pod is what tests look at in a pod of Rayfit's.
type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
	}
	Status struct {
		PodIP             string
		Conditions        []struct{ Type, Status string }
		ContainerStatuses []struct {
			RestartCount int
			State        struct{ Terminated *struct{ ExitCode int } }
		}
	}
}

func (p pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && p.Metadata.DeletionTimestamp == ""
		}
	}
	return false
}

// pods are those that serve webhooks, also those that are going.
func pods(l *lab.Lab) ([]pod, error) {
	stdout, _, err := l.Kubectl("get", "--raw", "/api/v1/namespaces/"+system+"/pods?labelSelector=app.kubernetes.io/component=admission")
	var list struct{ Items []pod }
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &list)
	}
	return list.Items, err
}

// readyPods fails unless there are so many, all ready, and none is going.
func readyPods(t *testing.T, l *lab.Lab, count int) []pod {
	t.Helper()
	var found []pod
	labtest.Eventually(t, time.Minute, fmt.Sprintf("%d replicas are ready and no other is left", count), func() error {
		var err error
		if found, err = pods(l); err != nil {
			return err
		}
		for _, p := range found {
			if !p.ready() {
				return errors.New(p.Metadata.Name + " is not ready")
			}
		}
		if len(found) != count {
			return fmt.Errorf("%d pods", len(found))
		}
		return nil
	})
	return found
}

// noneForbidden checks that the account has all the rights that it uses.
func noneForbidden(t *testing.T, l *lab.Lab) {
	t.Helper()
	noneForbiddenSince(t, l, time.Time{})
}

// noneForbiddenSince leaves out what was logged before a moment: an API server that
// has just started forbids everything until it has read the roles.
func noneForbiddenSince(t *testing.T, l *lab.Lab, begin time.Time) {
	t.Helper()
	logs := labtest.Kubectl(t, l, "logs", "-n", system, "-l", "app.kubernetes.io/name=rayfit", "--tail=-1")
	if logs == "" {
		t.Error("the replicas have no logs")
	}
	for line := range strings.Lines(logs) {
		var said struct {
			Timestamp time.Time
			Level     string
		}
		// That something is seen again is said with why it was not.
		err := json.Unmarshal([]byte(line), &said)
		if err == nil && (said.Timestamp.Before(begin) || said.Level == "INFO" && strings.Contains(line, "seen again")) {
			continue
		}
		low := strings.ToLower(line)
		if strings.Contains(low, "forbidden") || strings.Contains(low, "panic") || strings.Contains(low, `"level":"error"`) {
			t.Errorf("a replica logs: %s", line)
		}
	}
}
