package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// Server is one `rayfit serve`, on two loopback ports of its own.
type Server struct {
	// Name is the process's name in the lab: lab.LogFile(Name) is its log.
	Name string

	lab          *lab.Lab
	binary       string
	certificates string
	port, health int
}

// count tells the servers of one lab apart.
var count atomic.Int32

// Serve starts a server with a certificate of the lab's authority, and waits
// until it is ready.
func Serve(ctx context.Context, l *lab.Lab, args ...string) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: fmt.Sprintf("rayfit-%d", count.Add(1)), lab: l, binary: binary}
	if s.certificates, err = writeCertificate(l, s.Name); err != nil {
		return nil, err
	}
	for _, port := range []*int{&s.port, &s.health} {
		if *port, err = lab.HoldPort(); err != nil {
			return nil, err
		}
	}
	return s, s.Start(ctx, args...)
}

// Start starts the server again after Stop, on the same ports; args may differ.
func (s *Server) Start(ctx context.Context, args ...string) error {
	argv := append([]string{
		s.binary, "serve",
		"--bind=127.0.0.1",
		"--port=" + strconv.Itoa(s.port),
		"--health-port=" + strconv.Itoa(s.health),
		"--cert-dir=" + s.certificates,
		"--shutdown-delay=0",
		"--log-format=text",
	}, args...)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--log=") }) {
		argv = append(argv, "--log=debug")
	}
	if err := s.lab.Run(s.Name, argv...); err != nil {
		return err
	}
	return lab.Eventually(ctx, timeout, "wait until "+s.Name+" is ready", func() error {
		_, err := s.get(ctx, "/readyz")
		if err != nil && !s.lab.Running(s.Name) {
			log, _ := s.lab.Logs(s.Name)
			return fmt.Errorf("it has ended; its log: %s", log)
		}
		return err
	})
}

// Stop ends the server as Kubernetes would.
func (s *Server) Stop() error { return s.lab.End(s.Name, timeout) }

// URL is the address of a path on the webhooks' port.
func (s *Server) URL(path string) string { return fmt.Sprintf("https://127.0.0.1:%d%s", s.port, path) }

// Metrics are the server's, as of now.
func (s *Server) Metrics(ctx context.Context) (Metrics, error) {
	text, err := s.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return ParseMetrics(text), nil
}

func (s *Server) get(ctx context.Context, path string) (string, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d%s", s.health, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("make a request for %s: %w", url, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", s.Name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return string(body), err
}

func writeCertificate(l *lab.Lab, name string) (string, error) {
	certificate, key, err := l.ServingCertificate([]string{"localhost"}, "127.0.0.1")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(l.Dir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the certificate's directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600); err != nil {
		return "", fmt.Errorf("write the key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o644); err != nil {
		return "", fmt.Errorf("write the certificate: %w", err)
	}
	return dir, nil
}
