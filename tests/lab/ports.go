package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
)

// ports of the lab's components, all on 127.0.0.1.
type ports struct {
	APIServer        int   `json:"apiServer"`
	EtcdClient       int   `json:"etcdClient"`
	EtcdPeer         int   `json:"etcdPeer"`
	Operator         int   `json:"operator"`
	Health           int   `json:"health"`
	CertManager      int   `json:"certManager"`
	VPAWebhook       int   `json:"vpaWebhook"`
	VPAAdmission     int   `json:"vpaAdmission"`
	VPAUpdater       int   `json:"vpaUpdater"`
	Karpenter        int   `json:"karpenter"`
	KarpenterMetrics int   `json:"karpenterMetrics"`
	Kubelets         []int `json:"kubelets"` // the nodes'
}

func holdPorts(nodes int) (ports, error) {
	p := ports{Kubelets: make([]int, nodes)}
	all := []*int{&p.APIServer, &p.EtcdClient, &p.EtcdPeer, &p.Operator, &p.Health, &p.CertManager, &p.VPAWebhook, &p.VPAAdmission, &p.VPAUpdater, &p.Karpenter, &p.KarpenterMetrics}
	for n := range p.Kubelets {
		all = append(all, &p.Kubelets[n])
	}
	for _, port := range all {
		var err error
		if *port, err = HoldPort(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// held are the sockets of HoldPort, which a process that outlives this one inherits.
var held struct {
	sync.Mutex
	sockets []*os.File
}

// HoldPort has the kernel choose a port, and holds it on all addresses of this machine
// until this process ends, for servers that cannot say which port they were given, or
// have to come back to theirs. The socket that holds it is bound and does not listen: a
// server that is told the number binds it too, as often as it is started, since servers
// allow the reuse of an address (SO_REUSEADDR or SO_REUSEPORT). Meanwhile the kernel
// gives the port to nobody else who asks for one and to no connection, and whoever tries
// a number to see whether it is free finds that it is not, as Ray does.
func HoldPort() (int, error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("hold a port: %w", err)
	}
	const reusePort = 15 // SO_REUSEPORT, which package syscall does not name
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, reusePort, 1))
	if err == nil {
		err = syscall.Bind(socket, &syscall.SockaddrInet4{})
	}
	if err != nil {
		_ = syscall.Close(socket)
		return 0, fmt.Errorf("hold a port: %w", err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		_ = syscall.Close(socket)
		return 0, fmt.Errorf("read the number of a port: %w", err)
	}
	held.Lock()
	defer held.Unlock()
	held.sockets = append(held.sockets, os.NewFile(uintptr(socket), "port"))
	return bound.(*syscall.SockaddrInet4).Port, nil
}

func heldSockets() []*os.File {
	held.Lock()
	defer held.Unlock()
	return slices.Clone(held.sockets)
}

// ClaimPort claims a port that cannot be chosen, for one user at a time on the whole
// machine: it waits until the one before has let go of it, or has ended. What it
// returns lets go of it. A claim is a socket whose name is in Linux' abstract
// namespace, so it ends with the process.
func ClaimPort(ctx context.Context, port int) (release func(), err error) {
	name := fmt.Sprintf("@rayfit-lab-port-%d", port)
	for {
		claim, err := net.Listen("unix", name)
		if err == nil {
			return func() { _ = claim.Close() }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("claim port %d: %w", port, err)
		}
		if err := untilReleased(ctx, name); err != nil {
			return nil, fmt.Errorf("port %d is another's: stop other labs: %w", port, err)
		}
	}
}

// untilReleased returns when the listener of a claim has gone: nobody accepts its
// connections, and they end with it.
func untilReleased(ctx context.Context, name string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", name)
	if err != nil {
		return ctx.Err()
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = conn.Read(make([]byte, 1))
	return ctx.Err()
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// maxNodes keeps node n's pods in 127.X.n.0/24.
const maxNodes = 250

// claimNetwork finds a second octet X such that this lab's pods can live in
// 127.X.<node>.<pod> without meeting another lab's. Whoever listens on the
// socket of that octet has it, so the claim ends with the process that holds
// it. The socket is the service proxy's; its name is in Linux' abstract
// namespace, so it leaves no file behind and no directory is too long for it.
func claimNetwork() (octet int, listener *net.UnixListener, err error) {
	const octets = 200
	for octet := range octets {
		address := &net.UnixAddr{Name: proxySocket(octet), Net: "unix"}
		if listener, err = net.ListenUnix("unix", address); err == nil {
			return octet, listener, nil
		}
	}
	return 0, nil, fmt.Errorf("no free network for pods on loopback: stop other labs: %w", err)
}

func proxySocket(octet int) string { return fmt.Sprintf("@rayfit-lab-network-%d", octet) }
