package lab

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// CrashNode kills a node's kubelet, and with it, by the kernel, every container
// on the node: nothing is told, as when a machine loses its power. For the API
// server its pods are as they were until somebody notices.
func (l *Lab) CrashNode(n int) error {
	p, err := l.component(NodeName(n))
	if err != nil {
		return err
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	return l.stop(stopTimeout, p.Name)
}

// StartNode brings a node back that has crashed. It starts its pods again.
func (l *Lab) StartNode(n int) error { return l.startNode(n) }

// Restart stops the whole lab and starts it again with what etcd has stored, as
// after a power cut of a data centre. It returns when the API server answers;
// nodes, add-ons and pods are on their way then.
func (l *Lab) Restart(ctx context.Context) error {
	if err := l.stopAll(); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: proxySocket(l.state.Octet), Net: "unix"})
	if err != nil {
		return fmt.Errorf("claim the network for pods again: %w", err)
	}
	defer listener.Close()
	if err := l.startServers(ctx, listener); err != nil {
		return err
	}
	return l.restartOthers(ctx)
}

func (l *Lab) restartOthers(ctx context.Context) error {
	if l.hasControllerManager() {
		if err := l.startControllerManager(); err != nil {
			return err
		}
	}
	if l.options.AdmissionOnly {
		return nil
	}
	if err := l.startScheduler(); err != nil {
		return err
	}
	for n := 1; n <= l.options.Nodes; n++ {
		if err := l.startNode(n); err != nil {
			return err
		}
	}
	if l.options.has(WithCertManager) {
		if err := l.runCertManager(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithVPA) {
		if err := l.runVPA(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithKarpenter) {
		if err := l.runKarpenter(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithOperator) {
		return l.startOperator(ctx)
	}
	return nil
}
