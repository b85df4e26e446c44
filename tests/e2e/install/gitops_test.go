package install

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// As Argo CD and Flux apply: on the server, under a name of their own, again and
// again, with what their dry run would change shown as a difference.
func TestAGitOpsToolSeesNoDifferenceInAnInstall(t *testing.T) {
	l := cluster(t)
	manifests := rayfit(t, "manifests", "--self-managed")
	removeAfter(t, l, manifests)
	argo, flux := gitOps{l, manifests, "argocd-controller"}, gitOps{l, manifests, "kustomize-controller"}
	argo.apply(t)
	rolledOut(t, l)
	trusted(t, l)
	generation := labtest.Kubectl(t, l, "get", "deployment", "rayfit", "-n", system, "-o", "jsonpath={.metadata.generation}")
	for _, tool := range []gitOps{argo, flux} {
		if changes := tool.diff(t); len(changes) > 0 {
			t.Errorf("%s would change: %s", tool.manager, changes)
		}
		tool.apply(t)
		trusted(t, l)
	}
	if now := labtest.Kubectl(t, l, "get", "deployment", "rayfit", "-n", system, "-o", "jsonpath={.metadata.generation}"); now != generation {
		t.Errorf("applied again, the Deployment has generation %s instead of %s", now, generation)
	}
	onlyTheFailurePolicyDiffers(t, argo)
}

// Where a policy fails closed, Rayfit writes failurePolicy, which the manifests
// set too. Nothing else differs; docs/integrations.md says how to leave it alone.
func onlyTheFailurePolicyDiffers(t *testing.T, tool gitOps) {
	t.Helper()
	const policy = "{apiVersion: rayfit.dev/v1alpha1, kind: RayPolicy, metadata: {name: closed}, spec: {failClosed: true}}"
	if _, _, err := tool.lab.Apply(policy); err != nil {
		t.Fatal(err)
	}
	labtest.Kubectl(t, tool.lab, "wait", "rayp/closed", "--for=condition=FailClosed", "--timeout=60s")
	changes := tool.diff(t)
	if len(changes) == 0 {
		t.Error("no difference: the documentation need not speak of it")
	}
	for _, line := range changes {
		if !strings.Contains(line, "failurePolicy:") && !strings.Contains(line, "generation:") {
			t.Errorf("it would change: %s", line)
		}
	}
	// A sync opens the webhooks, and the audit closes them again.
	tool.apply(t)
	labtest.Eventually(t, time.Minute, "the webhooks fail closed again", func() error {
		if changes := tool.diff(t); len(changes) == 0 {
			return errors.New("they are open")
		}
		return nil
	})
}

// gitOps is a tool that keeps manifests applied.
type gitOps struct {
	lab       *lab.Lab
	manifests string
	manager   string
}

func (g gitOps) kubectl(verb string, more ...string) *exec.Cmd {
	args := append([]string{verb, "--server-side", "--force-conflicts", "--field-manager=" + g.manager, "-f", "-"}, more...)
	cmd := g.lab.KubectlCommand(context.Background(), args...)
	cmd.Stdin = strings.NewReader(g.manifests)
	return cmd
}

func (g gitOps) apply(t *testing.T) {
	t.Helper()
	if said, err := g.kubectl("apply").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", g.manager, err, said)
	}
}

// diff is the lines that applying would change.
func (g gitOps) diff(t *testing.T) []string {
	t.Helper()
	said, err := g.kubectl("diff").CombinedOutput()
	if code := new(exec.ExitError); err != nil && !(errors.As(err, &code) && code.ExitCode() == 1) {
		t.Fatal(fmt.Errorf("kubectl diff: %w: %s", err, said))
	}
	var lines []string
	for line := range strings.Lines(string(said)) {
		changed := strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-")
		if changed && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
