package lab

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// kubeconfig renders a self-contained kubeconfig: certificates are inside, so
// the file works from any directory and after the lab's own files have moved.
func kubeconfig(server string, ca []byte, user string, pair certificate) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %q
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: lab
  context:
    cluster: lab
    user: %q
current-context: lab
`, server, b64(ca), user, b64(pair.cert), b64(pair.key), user)
}

// Kubeconfig is the path of the admin's kubeconfig (group system:masters).
func (l *Lab) Kubeconfig() string { return filepath.Join(l.Dir(), "kubeconfig") }

// KubeconfigFor writes a kubeconfig for another user and returns its path. The
// user has only what RBAC grants to it or to its groups.
func (l *Lab) KubeconfigFor(user string, groups ...string) (string, error) {
	name := strings.NewReplacer(":", "-", "/", "-", "@", "-").Replace(user)
	path := filepath.Join(l.Dir(), "users", name+".kubeconfig")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("make the directory for %s's kubeconfig: %w", user, err)
	}
	return path, l.writeKubeconfig(path, user, groups...)
}

func (l *Lab) writeKubeconfig(path, user string, groups ...string) error {
	ca, err := loadAuthority(l.path("pki"))
	if err != nil {
		return err
	}
	pair, err := ca.client(user, groups...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, kubeconfig(l.URL(), ca.pem, user, pair), 0o600); err != nil {
		return fmt.Errorf("write %s's kubeconfig: %w", user, err)
	}
	return nil
}

// CA is the lab's certificate authority as PEM, for clients and caBundles.
func (l *Lab) CA() ([]byte, error) {
	ca, err := loadAuthority(l.path("pki"))
	if err != nil {
		return nil, err
	}
	return ca.pem, nil
}

// ServingCertificate issues a certificate of the lab's authority for a server
// of the test's own, such as a webhook registered by URL.
func (l *Lab) ServingCertificate(hosts []string, ips ...string) (cert, key []byte, err error) {
	ca, err := loadAuthority(l.path("pki"))
	if err != nil {
		return nil, nil, err
	}
	addresses := make([]net.IP, 0, len(ips))
	for _, ip := range ips {
		addresses = append(addresses, net.ParseIP(ip))
	}
	pair, err := ca.server("lab", hosts, addresses)
	return pair.cert, pair.key, err
}
