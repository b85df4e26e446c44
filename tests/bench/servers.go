package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

const (
	serverCore    = 0
	generatorCore = 1

	theirPath = "/validate-ray-io-v1-raycluster"

	// Of the floor: the body is read, and also walked through as JSON once.
	readPath = "/allowed"
	walkPath = "/walked"
)

// contender is one of the servers, before it runs.
type contender struct {
	name    string
	address string
	paths   []string // of its webhooks
	argv    []string
	env     []string
	log     string
}

// contenders prepares all on one lab: they serve with the same certificate, and
// all but the floor watch the same API server.
func contenders(ctx context.Context, l *lab.Lab, rayfit, least string) ([]contender, error) {
	operator, err := lab.Build(ctx, "operator", os.Stderr)
	if err != nil {
		return nil, err
	}
	// The operator looks for it below the folder for temporary files.
	temporary := filepath.Join(l.Dir(), "bench")
	certificates := filepath.Join(temporary, "k8s-webhook-server", "serving-certs")
	if err := writeCertificate(l, certificates); err != nil {
		return nil, err
	}
	var ports [5]string
	for i := range ports {
		port, err := lab.HoldPort()
		if err != nil {
			return nil, err
		}
		ports[i] = strconv.Itoa(port)
	}
	return []contender{
		{
			name: ours, address: "127.0.0.1:" + ports[0], paths: []string{"/validate", "/mutate"},
			argv: []string{
				rayfit, "serve", "--threads=1", "--bind=127.0.0.1", "--port=" + ports[0], "--health-port=" + ports[1],
				"--cert-dir=" + certificates, "--kubeconfig=" + l.Kubeconfig(),
			},
			log: filepath.Join(temporary, "rayfit.log"),
		},
		{
			// The port is fixed in the operator.
			name: theirs, address: "127.0.0.1:9443", paths: []string{theirPath},
			argv: []string{
				operator, "--kubeconfig=" + l.Kubeconfig(), "--enable-leader-election=false",
				"--metrics-addr=127.0.0.1:" + ports[2], "--health-probe-bind-address=127.0.0.1:" + ports[3],
			},
			env: []string{"ENABLE_WEBHOOKS=true", "GOMAXPROCS=1", "TMPDIR=" + temporary},
			log: filepath.Join(temporary, "kuberay.log"),
		},
		{
			name: floor, address: "127.0.0.1:" + ports[4], paths: []string{readPath, walkPath},
			argv: []string{least, "127.0.0.1:" + ports[4], certificates},
			log:  filepath.Join(temporary, "floor.log"),
		},
	}, nil
}

func writeCertificate(l *lab.Lab, folder string) error {
	chain, key, err := l.ServingCertificate([]string{"localhost"}, "127.0.0.1")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for the certificate: %w", err)
	}
	for name, pem := range map[string][]byte{"tls.crt": chain, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), pem, 0o600); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
	}
	return nil
}

// server is a contender that runs.
type server struct {
	contender
	command *exec.Cmd
	group   []*connection
	// ready is how long it took from the start of the process to the first answer.
	ready time.Duration
}

// start runs the contender on its core and waits for its first answer, which
// probe asks for.
func (c contender) start(ctx context.Context, config *tls.Config, probe review) (*server, error) {
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("make the log of %s: %w", c.name, err)
	}
	defer log.Close()
	s := &server{contender: c, command: exec.Command(c.argv[0], c.argv[1:]...)}
	s.command.Env = append(os.Environ(), c.env...)
	s.command.Stdout, s.command.Stderr = log, log
	begin := time.Now()
	if err := startOn(serverCore, s.command); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	for s.ready == 0 {
		if conn, err := dial(ctx, c.address, config); err == nil {
			_, err = conn.call(written(c.paths[0], probe.body))
			if err == nil {
				s.ready = time.Since(begin)
			}
			_ = conn.stream.Close()
		}
		if time.Since(begin) > time.Minute || ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("%s gives no answer after %s, see %s", c.name, time.Since(begin).Round(time.Second), c.log)
		}
		time.Sleep(time.Millisecond)
	}
	return s, nil
}

// startOn starts a command on a core: it inherits where its parent's thread may
// run. It must not outlive us, and the kernel tells by the thread, so this one
// is kept.
func startOn(core int, command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := bind(0, core); err != nil {
		return err
	}
	err := command.Start()
	if back := bind(0, generatorCore); err == nil {
		err = back
	}
	return err
}

// connect opens the connections that all loads go over.
func (s *server) connect(ctx context.Context, config *tls.Config) error {
	for range connections {
		conn, err := dial(ctx, s.address, config)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", s.name, err)
		}
		s.group = append(s.group, conn)
	}
	return nil
}

func (s *server) pid() int { return s.command.Process.Pid }

func (s *server) stop() {
	for _, conn := range s.group {
		_ = conn.stream.Close()
	}
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

// trust is a client's configuration that knows the lab's authority and keeps to
// HTTP/1.1.
func trust(authority []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("the lab's authority is no certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}}, nil
}
