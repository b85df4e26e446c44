package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client is a small client of the API server with the admin's certificate. It
// keeps client-go out of this module, which every test compiles.
type client struct {
	server string
	http   *http.Client
}

// StatusError is an answer of the API server other than success.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("API server says %d: %s", e.Code, e.Message) }

func (l *Lab) newClient() (*client, error) {
	ca, err := loadAuthority(l.path("pki"))
	if err != nil {
		return nil, err
	}
	pair, err := ca.client("lab-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("load the lab's client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	transport := &http.Transport{
		// Proxy stays nil: the lab never goes through anybody's proxy.
		TLSClientConfig:       &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		ForceAttemptHTTP2:     true,
		ResponseHeaderTimeout: startTimeout,
	}
	return &client{server: l.URL(), http: &http.Client{Transport: transport}}, nil
}

// do sends one request; the caller closes the body.
func (c *client) do(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request for %s: %w", path, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return response, nil
}

// call sends one request and returns the answer's body, or a StatusError.
func (c *client) call(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	response, err := c.do(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, statusError(response.StatusCode, raw)
	}
	return raw, nil
}

func statusError(code int, raw []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &status) != nil || status.Message == "" {
		status.Message = string(raw)
	}
	return &StatusError{Code: code, Message: status.Message}
}

func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.call(ctx, http.MethodGet, path, "", nil)
}

// Request sends one request to the API server as admin: for tests and
// benchmarks to which a kubectl for each call would be too slow. The content
// type follows the method: PATCH sends a JSON merge patch.
func (l *Lab) Request(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return l.api.call(ctx, method, path, contentTypeOf(method), body)
}

func contentTypeOf(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// waitHealthy waits until a component answers its health URL with success.
func (l *Lab) waitHealthy(ctx context.Context, component, url string) error {
	plain := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	return Eventually(ctx, startTimeout, "wait for "+component, func() error {
		if err := l.ended(component); err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("make a health request: %w", err)
		}
		response, err := plain.Do(request)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	})
}

// RequestWarned is Request, with the warnings that the API server sends along.
func (l *Lab) RequestWarned(ctx context.Context, method, path string, body []byte) (answer []byte, warnings []string, err error) {
	response, err := l.api.do(ctx, method, path, contentTypeOf(method), body)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return nil, nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	for _, header := range response.Header.Values("Warning") {
		warnings = append(warnings, strings.TrimPrefix(header, "299 - "))
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, warnings, statusError(response.StatusCode, answer)
	}
	return answer, warnings, nil
}
