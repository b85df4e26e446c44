package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// Ports are taken from below the range that the kernel uses for outgoing
// connections, and claimed: a port that was found here belongs to this process until
// it ends, also while the component that has it restarts. Other labs and tests on
// this machine find another one.
const (
	lowestPort  = 20000
	highestPort = 29999
)

// ports of the lab's components, all on 127.0.0.1.
type ports struct {
	APIServer        int `json:"apiServer"`
	EtcdClient       int `json:"etcdClient"`
	EtcdPeer         int `json:"etcdPeer"`
	Operator         int `json:"operator"`
	Health           int `json:"health"`
	CertManager      int `json:"certManager"`
	VPAWebhook       int `json:"vpaWebhook"`
	VPAAdmission     int `json:"vpaAdmission"`
	VPAUpdater       int `json:"vpaUpdater"`
	Karpenter        int `json:"karpenter"`
	KarpenterMetrics int `json:"karpenterMetrics"`
	Kubelet          int `json:"kubelet"` // the first node's; the next ones follow
}

func freePorts(nodes int) (ports, error) {
	var p ports
	for _, port := range []*int{&p.APIServer, &p.EtcdClient, &p.EtcdPeer, &p.Operator, &p.Health, &p.CertManager, &p.VPAWebhook, &p.VPAAdmission, &p.VPAUpdater, &p.Karpenter, &p.KarpenterMetrics} {
		free, err := freeRange(1)
		if err != nil {
			return p, err
		}
		*port = free
	}
	var err error
	p.Kubelet, err = freeRange(max(nodes, 1))
	return p, err
}

// FreePort finds a free port on 127.0.0.1 for a server of the caller's own.
func FreePort() (int, error) { return freeRange(1) }

// freeRange finds count neighbouring free ports and returns the first.
func freeRange(count int) (int, error) {
	const attempts = 200
	for range attempts {
		first := lowestPort + rand.IntN(highestPort-lowestPort-count)
		if claimRange(first, count) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1: stop other labs", count, lowestPort, highestPort)
}

// claims are the sockets by which others see that a port is this process's. Their
// names are in Linux' abstract namespace, so they end with the process.
var claims struct {
	sync.Mutex
	held []net.Listener
}

// claimOf is the name of the socket by which a port is claimed.
func claimOf(port int) string { return fmt.Sprintf("@rayfit-lab-port-%d", port) }

// ClaimPort claims a port that cannot be chosen, for one user at a time on the whole
// machine: it waits until the one before has let go of it, or has ended. What it
// returns lets go of it.
func ClaimPort(ctx context.Context, port int) (release func(), err error) {
	name := claimOf(port)
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

// claimRange claims neighbouring ports if they are free and nobody else has claimed
// any of them.
func claimRange(first, count int) bool {
	claims.Lock()
	defer claims.Unlock()
	before := len(claims.held)
	for port := first; port < first+count; port++ {
		claim, err := net.Listen("unix", claimOf(port))
		if err == nil {
			claims.held = append(claims.held, claim)
		}
		if err != nil || !isFree(port) {
			for _, claim := range claims.held[before:] {
				_ = claim.Close()
			}
			claims.held = claims.held[:before]
			return false
		}
	}
	return true
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
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
