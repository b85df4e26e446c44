package install

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// demo prepares scripts/demo.sh in a process group of its own, as a terminal's
// shell does. The cluster that the environment names is one that must not be used.
func demo(t *testing.T, environment ...string) (*exec.Cmd, *output) {
	t.Helper()
	elsewhere := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(elsewhere, []byte("nobody may read this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: sockets in the lab's directory need a short path.
	temporary, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(temporary); err != nil {
			t.Errorf("the demo leaves files: %v", err)
		}
	})
	said := &output{}
	cmd := exec.Command(repository + "/scripts/demo.sh")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+elsewhere, "TMPDIR="+temporary)
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return cmd, said
}

// onCluster is the environment for an existing cluster, the shared lab: kubectl, and
// nothing to build with.
func onCluster(l *lab.Lab) []string {
	return []string{
		"RAYFIT_DEMO_KUBECONFIG=" + l.Kubeconfig(), "RAYFIT_DEMO_IMAGE=rayfit:demo",
		"PATH=" + filepath.Join(l.Dir(), "bin") + ":/usr/bin:/bin",
	}
}

// output collects what a program says while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// showsAll checks that everything that the demo promises is there, in order.
func showsAll(t *testing.T, said string) {
	t.Helper()
	showsInOrder(t, said, "$ rayfit check examples/bad.yaml", "RF104", "1 Ray object checked, 1 denied",
		"raycluster.ray.io/legacy created", "successfully rolled out",
		"$ kubectl apply -f bad.yaml", "is invalid", "RF104", "RF105", "RF108", "RF201", "RF204",
		"created (server dry run)", "raycluster.ray.io/notebook created",
		"+    upscalingMode: Default",
		"Warning: RF213", "raycluster.ray.io/unbounded created",
		"raycluster.ray.io/legacy annotated", `"legacy" is invalid`, "raycluster.ray.io/legacy patched",
		"1 Ray object checked, 1 denied",
		"rayfit explain RF104",
	)
}

func showsInOrder(t *testing.T, said string, parts ...string) {
	t.Helper()
	rest := said
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("the demo does not show %q where it should:\n%s", part, said)
		}
		rest = after
	}
}

// nothingOfTheDemo checks that it has removed what it made.
func nothingOfTheDemo(t *testing.T, l *lab.Lab) {
	t.Helper()
	left := labtest.Kubectl(t, l, "get", "namespaces,mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings", "-o", "name")
	for line := range strings.Lines(left) {
		if strings.Contains(line, "rayfit") {
			t.Errorf("left in the cluster: %s", line)
		}
	}
}

func TestTheDemoShowsAllInALabOfItsOwn(t *testing.T) {
	cmd, said := demo(t)
	cmd.Args = append(cmd.Args, binary(t))
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	showsAll(t, said.String())
	showsInOrder(t, said.String(), "raycluster.ray.io/live created", "condition met", " 1     0",
		"Ray has 1.0 CPUs", "has run", "in pod live-cpu-worker-", " 3     0", "Resized", "nothing is pending")
}

func TestTheDemoShowsAllOnAnExistingCluster(t *testing.T) {
	l := cluster(t)
	cmd, said := demo(t, onCluster(l)...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	showsAll(t, said.String())
	nothingOfTheDemo(t, l)
}

func TestTheDemoCleansUpOnControlC(t *testing.T) {
	l := cluster(t)
	cmd, said := demo(t, onCluster(l)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	labtest.Eventually(t, time.Minute, "the demo installs", func() error {
		if !strings.Contains(said.String(), "deployment.apps/rayfit created") {
			return fmt.Errorf("so far it says: %s", said)
		}
		return nil
	})
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("after Ctrl-C: %v, want exit code 130\n%s", err, said)
	}
	nothingOfTheDemo(t, l)
}

func TestTheDemoTouchesNothingThatIsThere(t *testing.T) {
	l := cluster(t)
	labtest.Kubectl(t, l, "create", "namespace", "rayfit-demo")
	defer labtest.Kubectl(t, l, "delete", "namespace", "rayfit-demo")
	cmd, said := demo(t, onCluster(l)...)
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "namespace/rayfit-demo already") {
		t.Errorf("somebody's namespace: %v\n%s", err, said)
	}
	labtest.Kubectl(t, l, "get", "namespace", "rayfit-demo")
}

func TestTheDemoNeedsAnImageWhereNoneCanBeLoaded(t *testing.T) {
	l := cluster(t)
	cmd, said := demo(t, append(onCluster(l), "RAYFIT_DEMO_IMAGE=")...)
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "RAYFIT_DEMO_IMAGE=registry/") {
		t.Errorf("a cluster that is neither kind nor minikube: %v\n%s", err, said)
	}
	nothingOfTheDemo(t, l)
}
