package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// trust is the authorities that API servers verify the webhooks with.
func trust(l *lab.Lab) (*x509.CertPool, error) {
	text, _, err := l.Kubectl("get", "validatingwebhookconfiguration", "rayfit-validating", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
	if err != nil {
		return nil, err
	}
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("no authority in the caBundle")
	}
	return roots, nil
}

// handshake makes a new connection to a replica, verifies it as an API server
// does, and returns the certificate; without roots, nothing is verified.
func handshake(address string, roots *x509.CertPool) (*x509.Certificate, error) {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 5 * time.Second},
		Config:    &tls.Config{RootCAs: roots, ServerName: host, InsecureSkipVerify: roots == nil}, //nolint:gosec // see above
	}
	connection, err := dialer.DialContext(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	session, ok := connection.(*tls.Conn)
	if !ok {
		return nil, errors.New("not a TLS connection")
	}
	return session.ConnectionState().PeerCertificates[0], nil
}

// served is what a certificate is told apart by: its number and its authority's key.
type served struct{ leaf, authority string }

func servedBy(address string) (served, error) {
	certificate, err := handshake(address, nil)
	if err != nil {
		return served{}, err
	}
	return served{certificate.SerialNumber.String(), fmt.Sprintf("%x", certificate.AuthorityKeyId)}, nil
}

// allServe waits until every replica serves one and the same certificate that
// is wanted, and returns it.
func allServe(t *testing.T, l *lab.Lab, timeout time.Duration, what string, wanted func(served) bool) served {
	t.Helper()
	var found served
	labtest.Eventually(t, timeout, what, func() error {
		list, err := pods(l)
		if err != nil {
			return err
		}
		var all []served
		for _, p := range list {
			if !p.ready() {
				continue
			}
			one, err := servedBy(net.JoinHostPort(p.Status.PodIP, "10250"))
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		if len(all) < 2 || len(slices.Compact(slices.Clone(all))) != 1 || !wanted(all[0]) {
			return fmt.Errorf("the ready replicas serve %v", all)
		}
		found = all[0]
		return nil
	})
	return found
}

// verifier makes new connections, as API servers do at any moment, with the
// bundle of just before. Their clients keep connections open and so would try
// a new certificate only now and then.
type verifier struct {
	l  *lab.Lab
	mu sync.Mutex
	to int
}

func (v *verifier) call(context.Context) error {
	roots, err := trust(v.l)
	if err != nil {
		return err
	}
	list, err := pods(v.l)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p pod) bool { return !p.ready() })
	if len(list) == 0 {
		return errors.New("no replica is ready")
	}
	v.mu.Lock()
	v.to++
	address := net.JoinHostPort(list[v.to%len(list)].Status.PodIP, "10250")
	v.mu.Unlock()
	if _, err := handshake(address, roots); err != nil {
		return fmt.Errorf("new connection to %s: %w", address, err)
	}
	return nil
}
