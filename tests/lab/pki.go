package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of the lab's certificates: longer than any lab, short enough that a
// forgotten key is worth nothing.
const lifetime = 30 * 24 * time.Hour

// authority is the lab's own certificate authority. The API server trusts it
// for client certificates, pods trust it for the API server.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// certificate is a leaf with its key, both as PEM.
type certificate struct{ cert, key []byte }

func (a *authority) caFile() string { return filepath.Join(a.dir, "ca.crt") }

// newAuthority creates an authority and writes it into dir.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the CA's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "rayfit-lab-ca"},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the CA certificate: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pair := certificate{cert: certPEM, key: keyPEM}
	if err := pair.write(dir, "ca"); err != nil {
		return nil, err
	}
	return loadAuthority(dir)
}

// loadAuthority reads an authority that newAuthority wrote.
func loadAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the lab's CA: %w", err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("read the lab's CA key: %w", err)
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("the lab's CA in %s is not PEM: start the lab anew", dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the lab's CA: %w", err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the lab's CA key: %w", err)
	}
	return &authority{dir: dir, cert: cert, key: key, pem: certPEM}, nil
}

// client issues a client certificate: Kubernetes takes the common name as the
// user and the organizations as its groups.
func (a *authority) client(user string, groups ...string) (certificate, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues a serving certificate for the names and addresses.
func (a *authority) server(name string, hosts []string, ips []net.IP) (certificate, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    hosts,
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, fmt.Errorf("generate a key for %s: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber = serial()
	template.NotBefore = a.cert.NotBefore
	template.NotAfter = a.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return certificate{}, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return certificate{}, err
	}
	return certificate{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, nil
}

// write stores the pair as dir/name.crt and dir/name.key.
func (c certificate) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".key"), c.key, 0o600); err != nil {
		return fmt.Errorf("write the key of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), c.cert, 0o644); err != nil {
		return fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	return nil
}

// newSigningKey writes the key that signs service-account tokens.
func newSigningKey(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the service-account key: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "service-account.key"), keyPEM, 0o600); err != nil {
		return fmt.Errorf("write the service-account key: %w", err)
	}
	return nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func serial() *big.Int {
	var b [16]byte
	// crypto/rand.Read never fails on the platforms the lab runs on (Go 1.24).
	_, _ = rand.Read(b[:])
	return new(big.Int).SetBytes(b[:])
}
