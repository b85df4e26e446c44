package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// proxy stands in for kube-proxy and DNS. The API server asks it by CONNECT
// for a Service's address, a pod's or a kubelet's, and gets a connection to
// the loopback address behind it. So webhooks with clientConfig.service work
// with unchanged manifests and real verification of the Service's TLS name.
type proxy struct {
	store *store
	// hostsFiles, by namespace, are bind-mounted over /etc/hosts in containers;
	// they keep their inodes and are only ever overwritten.
	hostsFiles map[string]*hostsFile
	hostsDir   string
	more       string // further lines of each of them
	hostsMu    sync.Mutex
}

type hostsFile struct {
	*os.File
	text string
}

// outside is the name of the hosts file for programs that are in no namespace;
// no namespace can be called so.
const outside = "_"

// noBackendPatience is how long a connection waits for a ready pod: the watch
// may be a moment behind the test that has just seen the pod ready.
const noBackendPatience = 300 * time.Millisecond

func newProxy(hostsDir, more string) (*proxy, error) {
	if err := os.MkdirAll(hostsDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of hosts files: %w", err)
	}
	p := &proxy{hostsDir: hostsDir, more: more, hostsFiles: map[string]*hostsFile{}}
	p.store = newStore(p.writeHosts)
	p.writeHosts()
	return p, nil
}

// serve runs until the context ends.
func (p *proxy) serve(ctx context.Context, listener net.Listener, api *client) error {
	defer p.closeHosts()
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go p.store.follow(ctx, api)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the service proxy: %w", err)
	}
	return nil
}

// ServeHTTP answers CONNECT.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy takes CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	backend, err := p.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer backend.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	relay(client, buffered, backend)
}

func (p *proxy) dial(ctx context.Context, target string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("target %q is not host:port: %w", target, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("target %q has no numeric port: %w", target, err)
	}
	var address string
	err = Eventually(ctx, noBackendPatience, "find a backend", func() (err error) {
		address, err = p.store.cluster().route(host, port, rand.IntN)
		return err
	})
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
}

// relay copies both ways until one side ends, then closes both.
func relay(client net.Conn, fromClient io.Reader, backend net.Conn) {
	done := make(chan struct{}, 2)
	pump := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pump(backend, fromClient)
	go pump(client, backend)
	<-done
	_ = client.Close()
	_ = backend.Close()
	<-done
}

// writeHosts brings the hosts files up to date, where something in them changes.
func (p *proxy) writeHosts() {
	p.hostsMu.Lock()
	defer p.hostsMu.Unlock()
	var c cluster
	if p.store != nil {
		c = p.store.cluster()
	}
	p.writeHostsOf(outside, c.hosts("")+p.more)
	for _, namespace := range c.namespaces() {
		p.writeHostsOf(namespace, c.hosts(namespace)+p.more)
	}
}

func (p *proxy) writeHostsOf(name, text string) {
	hosts := p.hostsFiles[name]
	if hosts == nil {
		file, err := os.OpenFile(filepath.Join(p.hostsDir, name), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return
		}
		hosts = &hostsFile{File: file}
		p.hostsFiles[name] = hosts
	}
	if text == hosts.text {
		return
	}
	// One write, then cut: a reader never finds an empty file.
	if _, err := hosts.WriteAt([]byte(text), 0); err != nil {
		return
	}
	if err := hosts.Truncate(int64(len(text))); err == nil {
		hosts.text = text
	}
}

func (p *proxy) closeHosts() {
	p.hostsMu.Lock()
	defer p.hostsMu.Unlock()
	for _, hosts := range p.hostsFiles {
		_ = hosts.Close()
	}
}

func (l *Lab) hostsPath() string { return l.path("hosts") }

// startProxy serves in this process, or hands the listener to a process of its
// own if the lab has to outlive us.
func (l *Lab) startProxy(listener *net.UnixListener) error {
	if l.options.Detach {
		return l.detachProxy(listener)
	}
	p, err := newProxy(l.hostsPath(), l.outsideHosts())
	if err != nil {
		return err
	}
	// startAll closes its listener when it returns; keep one of our own.
	own, err := duplicate(listener)
	if err != nil {
		return err
	}
	l.stopProxy = background(func(ctx context.Context) { _ = p.serve(ctx, own, l.api) })
	return nil
}

// beside runs something next to the lab: in this process, or by a hidden command, which
// names it, in a process of its own if the lab has to outlive us.
func (l *Lab) beside(command string, run func(*Lab, context.Context)) (stop func(), err error) {
	if !l.options.Detach {
		return background(func(ctx context.Context) { run(l, ctx) }), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	return nil, l.start(command, []string{self, command, l.Dir()}, nil)
}

// serveBeside is what such a command runs.
func serveBeside(ctx context.Context, dir string, run func(*Lab, context.Context)) error {
	l, err := Open(dir)
	if err != nil {
		return err
	}
	run(l, ctx)
	return nil
}

// background runs something in this process until it is stopped.
func background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() { cancel(); <-done }
}

func duplicate(listener *net.UnixListener) (net.Listener, error) {
	file, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("share the service proxy's listener: %w", err)
	}
	defer file.Close()
	own, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over the service proxy's listener: %w", err)
	}
	return own, nil
}

// ProxyCommand is the hidden command by which the lab's command line runs the
// service proxy in a process of its own: <executable> ProxyCommand DIR.
const ProxyCommand = "service-proxy"

func (l *Lab) detachProxy(listener *net.UnixListener) error {
	file, err := listener.File()
	if err != nil {
		return fmt.Errorf("share the service proxy's listener: %w", err)
	}
	defer file.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this executable: %w", err)
	}
	// That process holds the lab's ports from now on: it has to have them open, no more.
	return l.start(serviceProxy, []string{self, ProxyCommand, l.Dir()}, nil, append([]*os.File{file}, heldSockets()...)...)
}

// ServeProxy is what ProxyCommand runs: the listener is file descriptor 3.
func ServeProxy(ctx context.Context, dir string) error {
	l, err := Open(dir)
	if err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return fmt.Errorf("take the inherited listener: %w", err)
	}
	p, err := newProxy(l.hostsPath(), l.outsideHosts())
	if err != nil {
		return err
	}
	return p.serve(ctx, listener, l.api)
}
