package lab_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// start starts a lab that ends with the test.
func start(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster; left out by -short")
	}
	options.Dir = t.TempDir()
	options.Progress = os.Stderr
	l, err := lab.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
		noTraceOf(t, l.Dir())
	})
	return l
}

// noTraceOf checks that no process names the lab's directory and no mount is in it.
func noTraceOf(t *testing.T, dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left in %s", dir)
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		line, err := os.ReadFile("/proc/" + p.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), dir) {
			t.Errorf("process %s is left: %s", p.Name(), strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}

func apply(t *testing.T, l *lab.Lab, manifest string) {
	t.Helper()
	if _, _, err := l.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

func TestAdmissionOnly(t *testing.T) {
	l := start(t, lab.Options{AdmissionOnly: true, Audit: lab.AuditMetadata})

	labtest.Kubectl(t, l, "create", "namespace", "team-a")
	if got := labtest.Kubectl(t, l, "get", "crd", "rayclusters.ray.io", "-o", "jsonpath={.metadata.name}"); got != "rayclusters.ray.io" {
		t.Errorf("CRD = %q", got)
	}
	if _, stderr, err := l.KubectlAs("alice", []string{"team-a"}, "get", "pods", "-n", "team-a"); err == nil || !strings.Contains(stderr, `User "alice" cannot list`) {
		t.Errorf("alice without a role: %v, %s", err, stderr)
	}
	credentials, err := l.KubeconfigFor("bob", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	if got := labtest.Kubectl(t, l, "--kubeconfig", credentials, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups[0]}"); got != "bob team-a" {
		t.Errorf("whoami = %q", got)
	}

	if err := l.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	labtest.Kubectl(t, l, "delete", "namespace", "team-a", "--timeout=60s")
	if log, err := os.ReadFile(l.AuditLog()); err != nil || !strings.Contains(string(log), `"bob"`) {
		t.Errorf("audit log does not know bob (%d bytes, %v)", len(log), err)
	}
}

// A start that fails half-way ends what it has started, and says why.
func TestInterruptedStartLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts components; left out by -short")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := lab.Start(ctx, lab.Options{Dir: dir, AdmissionOnly: true, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error does not show the API server's own words: %v", err)
	}
	noTraceOf(t, dir)
}

const webServer = `
apiVersion: v1
kind: ConfigMap
metadata: {name: content, namespace: smoke}
data: {page: one}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: smoke}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: web
    image: example/web
    command: [/bin/sh, -c]
    args: ['echo from $POD_IP; trap "echo asked to end; exit 0" TERM; while :; do sleep 0.1; done']
    readinessProbe: {exec: {command: [cat, /content/page]}, periodSeconds: 1}
    resources: {requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 500m, memory: 64Mi}}
    volumeMounts:
    - {name: content, mountPath: /content}
    - {name: content, mountPath: /part/of-it, subPath: page}
  volumes: [{name: content, configMap: {name: content}}]
`

func TestPodIsAProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers need root for their namespaces")
	}
	l := start(t, lab.Options{Nodes: 1, Cores: 4, Memory: "8Gi"})
	labtest.Kubectl(t, l, "create", "namespace", "smoke")
	labtest.Kubectl(t, l, "wait", "--for=create", "serviceaccount/default", "-n", "smoke", "--timeout=30s")
	apply(t, l, webServer)
	labtest.Kubectl(t, l, "wait", "--for=condition=Ready", "pod/web", "-n", "smoke", "--timeout=60s")

	if got := labtest.Kubectl(t, l, "logs", "-n", "smoke", "web"); !strings.HasPrefix(got, "from 127.") {
		t.Errorf("log = %q", got)
	}
	inside := labtest.Kubectl(t, l, "exec", "-n", "smoke", "web", "--", "sh", "-c", "cat /content/page /part/of-it; ls /var/run/secrets/kubernetes.io/serviceaccount; ls /proc | grep -c '^[0-9]'")
	if !strings.HasPrefix(inside, "oneone") || !strings.Contains(inside, "token") {
		t.Errorf("inside the container: %q", inside)
	}
	if _, stderr, err := l.Kubectl("exec", "-n", "smoke", "web", "--", "sh", "-c", "kill -9 $$"); err == nil || !strings.Contains(stderr, "exit code 137") {
		t.Errorf("a command that is killed: %v, %s", err, stderr)
	}

	labtest.Kubectl(t, l, "patch", "pod", "web", "-n", "smoke", "--subresource", "resize", "-p",
		`{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"900m"},"limits":{"cpu":"900m"}}}]}}`)
	labtest.Kubectl(t, l, "wait", "--for=jsonpath={.status.containerStatuses[0].resources.limits.cpu}=900m", "pod/web", "-n", "smoke", "--timeout=30s")
	_, stderr, err := l.Kubectl("patch", "pod", "web", "-n", "smoke", "--subresource", "resize", "-p",
		`{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"9"},"limits":{"cpu":"9"}}}]}}`)
	if err == nil || !strings.Contains(stderr, "allocatable") {
		t.Errorf("a resize above the node: %v, %s", err, stderr)
	}

	labtest.Kubectl(t, l, "patch", "configmap", "content", "-n", "smoke", "-p", `{"data":{"page":"two"}}`)
	err = lab.Eventually(t.Context(), time.Minute, "see the ConfigMap change inside", func() error {
		stdout, _, err := l.Kubectl("exec", "-n", "smoke", "web", "--", "cat", "/content/page")
		if err == nil && stdout != "two" {
			err = os.ErrNotExist
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	labtest.Kubectl(t, l, "delete", "pod", "web", "-n", "smoke", "--timeout=30s")
	if left := l.Ended("smoke", "*"); len(left) != 0 {
		t.Errorf("a container that was asked to end left %q", left)
	}

	apply(t, l, endsByItself)
	labtest.Kubectl(t, l, "wait", "--for=jsonpath={.status.phase}=Failed", "pod/ends", "-n", "smoke", "--timeout=60s")
	labtest.Kubectl(t, l, "delete", "pod", "ends", "-n", "smoke", "--timeout=30s")
	left := l.Ended("smoke", "*")
	if len(left) != 1 {
		t.Fatalf("a container that ended by itself left %q", left)
	}
	for _, said := range []string{"container one of pod ends ended by itself with exit code 3: its last words", "what the raylet wrote"} {
		if !strings.Contains(left[0], said) {
			t.Errorf("%q is not in %s", said, left[0])
		}
	}
}

// endsByItself ends with an error, and has written where Ray does.
const endsByItself = `
apiVersion: v1
kind: Pod
metadata: {name: ends, namespace: smoke}
spec:
  restartPolicy: Never
  containers:
  - name: one
    image: example/one
    command: [/bin/sh, -c]
    args:
    - |
      mkdir -p /tmp/ray/session_2026-01-14/logs
      echo what the raylet wrote > /tmp/ray/session_2026-01-14/logs/raylet.err
      echo its last words
      exit 3
`
