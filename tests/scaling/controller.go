package scaling

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// systemNamespace is that of an install.
const systemNamespace = "rayfit-system"

// account is that of an install's controller.
const account = "rayfit-controller"

// Controller is a `rayfit serve` that scales clusters, as a process of this
// machine with the rights that an install gives to it.
type Controller struct {
	*rig.Server
	lab  *lab.Lab
	args []string
}

var replicas atomic.Int32

// StartController starts a replica that reaches the API server at a URL (that of
// the lab if empty), and waits until it is ready.
func StartController(ctx context.Context, l *lab.Lab, url string, args ...string) (*Controller, error) {
	if err := grant(ctx, l, rights); err != nil {
		return nil, err
	}
	return startReplica(ctx, l, url, systemNamespace, args...)
}

// AllowSecrets gives the replicas of a lab the rights of an install for Ray
// clusters with tokens or TLS.
func AllowSecrets(ctx context.Context, l *lab.Lab) error {
	return grant(ctx, l, rights, "--ray-auth")
}

// AllowDeletion gives the replicas of a lab the rights of an install that deletes
// clusters which nobody uses.
func AllowDeletion(ctx context.Context, l *lab.Lab) error {
	return grant(ctx, l, rights, "--delete-idle-clusters")
}

// StartRestricted starts a replica that may scale clusters in one namespace only:
// beyond it and its own its account has no right but to read policies and the
// namespaces that they match.
func StartRestricted(ctx context.Context, l *lab.Lab, url, system, namespace string) (*Controller, error) {
	if err := grant(ctx, l, rights, "--namespace="+system, "--only-namespace="+namespace); err != nil {
		return nil, err
	}
	return startReplica(ctx, l, url, system, "--namespaces="+namespace, "--lease-namespace="+system)
}

// StartInstallation starts a replica of an installation of its own, with a namespace and a
// Lease of its own, which scales the clusters of some namespaces.
func StartInstallation(ctx context.Context, l *lab.Lab, system string, namespaces ...string) (*Controller, error) {
	if err := grant(ctx, l, rights, "--namespace="+system); err != nil {
		return nil, err
	}
	return startReplica(ctx, l, "", system, "--namespaces="+strings.Join(namespaces, ","), "--lease-namespace="+system)
}

func startReplica(ctx context.Context, l *lab.Lab, url, system string, args ...string) (*Controller, error) {
	kubeconfig, err := credentials(l, url, account, system)
	if err != nil {
		return nil, err
	}
	// A name of its own, as that of a pod.
	replica := fmt.Sprintf("replica-%d", replicas.Add(1))
	args = append([]string{"--no-webhooks", "--kubeconfig=" + kubeconfig, "--replica=" + replica, "--log=info"}, args...)
	server, err := rig.Serve(ctx, l, args...)
	if err != nil {
		return nil, err
	}
	return &Controller{Server: server, lab: l, args: args}, nil
}

// Restart starts it again after Kill or Stop, as it was.
func (c *Controller) Restart(ctx context.Context) error {
	return c.Server.Start(ctx, c.args...)
}

// Kill ends the process without a word to it.
func (c *Controller) Kill() error {
	pid := c.PID()
	if pid == 0 {
		return fmt.Errorf("%s does not run", c.Name)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", c.Name, err)
	}
	return c.lab.End(c.Name, Patience)
}

// PID is its process, 0 if there is none.
func (c *Controller) PID() int { return c.lab.PID(c.Name) }

// Log is what it has written.
func (c *Controller) Log() string {
	text, _ := c.lab.Logs(c.Name)
	return text
}

// credentials writes a kubeconfig with a token of a service account.
func credentials(l *lab.Lab, url, account, namespace string) (string, error) {
	token, _, err := l.Kubectl("create", "token", account, "-n", namespace, "--duration=24h")
	if err != nil {
		return "", err
	}
	authority, err := l.CA()
	if err != nil {
		return "", err
	}
	if url == "" {
		url = l.URL()
	}
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: account, user: {token: %s}}]
contexts: [{name: lab, context: {cluster: lab, user: account, namespace: %s}}]
current-context: lab
`, url, base64.StdEncoding.EncodeToString(authority), strings.TrimSpace(token), namespace)
	folder := filepath.Join(l.Dir(), "users")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the directory for a kubeconfig: %w", err)
	}
	file, err := os.CreateTemp(folder, "rayfit-*.kubeconfig")
	if err != nil {
		return "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteString(content); err != nil {
		return "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	return file.Name(), nil
}

// rights are the kinds of objects that an install's rights consist of, and what
// they are to.
var rights = map[string]bool{
	"CustomResourceDefinition": true, "Namespace": true, "ServiceAccount": true, "ClusterRole": true, "ClusterRoleBinding": true, "Role": true, "RoleBinding": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
}

// grant applies what `rayfit manifests` prints of some kinds.
func grant(ctx context.Context, l *lab.Lab, kinds map[string]bool, args ...string) error {
	rendered, err := rig.Output(ctx, append([]string{"manifests"}, args...)...)
	if err != nil {
		return err
	}
	var documents []string
	for _, document := range strings.Split(rendered, "\n---\n") {
		var object rig.Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("read what rayfit manifests prints: %w", err)
		}
		if kind, _ := object["kind"].(string); kinds[kind] {
			documents = append(documents, document)
		}
	}
	_, _, err = l.Apply(strings.Join(documents, "\n---\n"))
	return err
}
