package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// KubectlCommand prepares a kubectl of the lab's version with the admin's
// kubeconfig. Its caches stay in the lab's directory.
func (l *Lab) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(l.binary("kubectl"), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(l.environment(nil), "KUBECONFIG="+l.Kubeconfig(), "KUBECACHEDIR="+l.path("home", "cache"))
	return cmd
}

// Kubectl runs kubectl as admin. A failure's error carries stderr's text.
func (l *Lab) Kubectl(args ...string) (stdout, stderr string, err error) {
	return runKubectl(l.KubectlCommand(context.Background(), args...), "")
}

// KubectlAs runs kubectl as another user by impersonation.
func (l *Lab) KubectlAs(user string, groups []string, args ...string) (stdout, stderr string, err error) {
	as := []string{"--as=" + user}
	for _, group := range groups {
		as = append(as, "--as-group="+group)
	}
	return l.Kubectl(append(as, args...)...)
}

// Apply applies YAML as `kubectl apply -f -` does.
func (l *Lab) Apply(manifest string) (stdout, stderr string, err error) {
	return runKubectl(l.KubectlCommand(context.Background(), "apply", "-f", "-"), manifest)
}

func runKubectl(cmd *exec.Cmd, input string) (string, string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdin = strings.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), stderr.String(), err
}
