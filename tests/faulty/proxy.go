// Package faulty puts a proxy in front of a lab's API server that answers some
// requests with faults: refusals, delays, connections that are cut before or
// after the request was carried out. A request at which the caller is killed is
// a point between two of its effects, without a word of it in the caller's code.
package faulty

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// Fault is what happens to the requests that it matches.
type Fault struct {
	// Method, Path and Body are what it matches: a method, or empty for all that
	// write; patterns for the path and for what is sent, or nil for every one.
	Method     string
	Path, Body *regexp.Regexp
	// Skip requests that match pass first, then Times are hit; 0 for all.
	Skip, Times int

	// Delay is waited for before anything else.
	Delay time.Duration
	// Status is answered instead of asking the API server, with Reason and Cause
	// in a Kubernetes status, and with RetryAfter seconds.
	Status        int
	Reason, Cause string
	RetryAfter    int
	// Before is called before the request is carried out, After when it has
	// been and its answer is not yet sent.
	Before, After func()
	// CutBefore and CutAfter close the connection instead of answering.
	CutBefore, CutAfter bool

	seen int
}

// Proxy is such a proxy. Its zero faults make it pass everything on.
type Proxy struct {
	URL string

	server *http.Server
	pass   *httputil.ReverseProxy
	mu     sync.Mutex
	faults []*Fault
	writes []Write
}

// Write is a request that changes something, and how it ended.
type Write struct {
	Method, Path string
	At           time.Time
	Status       int
}

// Start starts a proxy in front of a lab's API server. Who calls is told by
// bearer tokens; certificates do not pass.
func Start(l *lab.Lab) (*Proxy, error) {
	authority, err := l.CA()
	if err != nil {
		return nil, err
	}
	certificate, key, err := l.ServingCertificate([]string{"localhost"}, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("load the proxy's certificate: %w", err)
	}
	target, err := url.Parse(l.URL())
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	p := &Proxy{pass: httputil.NewSingleHostReverseProxy(target)}
	p.pass.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	p.pass.FlushInterval = -1
	p.pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy: %w", err)
	}
	p.URL = "https://" + listener.Addr().String()
	p.server = &http.Server{
		Handler:           p,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}},
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Stop ends the proxy and every connection through it.
func (p *Proxy) Stop() { _ = p.server.Close() }

// Inject adds a fault, after those that are there, and returns how to end it.
func (p *Proxy) Inject(f Fault) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	added := &f
	p.faults = append(p.faults, added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, one := range p.faults {
			if one == added {
				p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
				return
			}
		}
	}
}

// Writes are the requests until now that were to change something.
func (p *Proxy) Writes() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Write{}, p.writes...)
}

// mostBody is more than any request here sends.
const mostBody = 64 << 20

// ServeHTTP carries a request out, with the first fault that hits it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f := p.hit(r, body)
	if !pause(r.Context(), f.Delay) {
		return
	}
	if f.Before != nil {
		f.Before()
	}
	if f.CutBefore {
		panic(http.ErrAbortHandler)
	}
	answer := &recorder{ResponseWriter: w, hold: f.After != nil || f.CutAfter}
	if f.Status != 0 {
		refuse(answer, f)
	} else {
		p.pass.ServeHTTP(answer, r)
	}
	if writes(r) {
		p.mu.Lock()
		p.writes = append(p.writes, Write{Method: r.Method, Path: r.URL.Path, At: time.Now(), Status: answer.status})
		p.mu.Unlock()
	}
	if f.After != nil {
		f.After()
	}
	if f.CutAfter {
		panic(http.ErrAbortHandler)
	}
	answer.send()
}

func (p *Proxy) hit(r *http.Request, body []byte) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if !f.matches(r, body) {
			continue
		}
		f.seen++
		if f.seen > f.Skip && (f.Times == 0 || f.seen <= f.Skip+f.Times) {
			return *f
		}
	}
	return Fault{}
}

func (f *Fault) matches(r *http.Request, body []byte) bool {
	if f.Method == "" && !writes(r) || f.Method != "" && f.Method != r.Method {
		return false
	}
	return (f.Path == nil || f.Path.MatchString(r.URL.Path)) && (f.Body == nil || f.Body.Match(body))
}

func writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// pause says whether the caller is still there after a delay.
func pause(ctx context.Context, delay time.Duration) bool {
	if delay == 0 {
		return true
	}
	select {
	case <-time.After(delay):
		return true
	case <-ctx.Done():
		return false
	}
}

func refuse(w http.ResponseWriter, f Fault) {
	w.Header().Set("Content-Type", "application/json")
	details := map[string]any{}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		details["retryAfterSeconds"] = f.RetryAfter
	}
	message := "injected by the proxy"
	if f.Cause == "NodeCapacity" {
		message = "node didn't have enough allocatable resources: cpu, requested: 4000, allocatable: 1000"
	}
	if f.Cause != "" {
		details["causes"] = []any{map[string]any{"reason": f.Cause, "message": message}}
	}
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"message": message, "reason": f.Reason, "code": f.Status, "details": details,
	})
}

// recorder remembers the status, and holds an answer back if it is to come
// after something else, or never.
type recorder struct {
	http.ResponseWriter
	hold   bool
	status int
	body   []byte
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	if !r.hold {
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *recorder) Write(body []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.hold {
		r.body = append(r.body, body...)
		return len(body), nil
	}
	return r.ResponseWriter.Write(body)
}

// Unwrap lets the answer to a watch be flushed.
func (r *recorder) Unwrap() http.ResponseWriter {
	if r.hold {
		return nil
	}
	return r.ResponseWriter
}

// FlushError satisfies those who ask the recorder itself.
func (r *recorder) FlushError() error {
	if r.hold {
		return nil
	}
	if err := http.NewResponseController(r.ResponseWriter).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func (r *recorder) send() {
	if r.hold && r.status != 0 {
		r.ResponseWriter.WriteHeader(r.status)
		_, _ = r.ResponseWriter.Write(r.body)
	}
}
