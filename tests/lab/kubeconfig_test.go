package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestKubeconfigCarriesUserAndGroups(t *testing.T) {
	ca, err := newAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.client("system:node:node-1", "system:nodes", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			Name string `json:"name"`
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(kubeconfig("https://127.0.0.1:1", ca.pem, "system:node:node-1", pair), &parsed); err != nil {
		t.Fatal(err)
	}
	user := parsed.Users[0]
	loaded, err := tls.X509KeyPair(decode(t, user.User.Cert), decode(t, user.User.Key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(decode(t, parsed.Clusters[0].Cluster.CA)) {
		t.Fatal("no CA in the kubeconfig")
	}
	leaf := loaded.Leaf
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the API server would refuse the certificate: %v", err)
	}
	if leaf.Subject.CommonName != user.Name || !slices.Contains(leaf.Subject.Organization, "team-a") {
		t.Errorf("certificate is for %s in %v", leaf.Subject.CommonName, leaf.Subject.Organization)
	}
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
