package lab

import (
	"context"
	"fmt"
	"strconv"
)

const (
	operator    = "operator"
	certManager = "certmanager"
)

// NodeName is the name of the lab's n-th node, counted from 1.
func NodeName(n int) string { return fmt.Sprintf("node-%d", n) }

func (l *Lab) startNodes(ctx context.Context) error {
	for n := 1; n <= l.options.Nodes; n++ {
		if err := l.startNode(n); err != nil {
			return err
		}
	}
	for n := 1; n <= l.options.Nodes; n++ {
		if err := l.waitNode(ctx, NodeName(n)); err != nil {
			return err
		}
	}
	if l.options.Nodes > 0 {
		l.say.step("%d nodes are ready (%d cores, %s each)", l.options.Nodes, l.options.Cores, l.options.Memory)
	}
	return nil
}

// startNode starts a kubelet with a node's own identity, so that the API
// server's node authorizer decides what it may read.
func (l *Lab) startNode(n int) error {
	name := NodeName(n)
	credentials, err := l.KubeconfigFor("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	return l.start(name, []string{
		l.state.Kube, "node",
		"--name=" + name,
		"--kubeconfig=" + credentials,
		"--dir=" + l.path("nodes", name),
		"--cores=" + strconv.Itoa(l.options.Cores),
		"--memory=" + l.options.Memory,
		"--port=" + strconv.Itoa(l.state.Ports.Kubelet+n-1),
		"--pod-network=" + fmt.Sprintf("127.%d.%d", l.state.Octet, n),
		"--hosts=" + l.hostsPath(),
		"--api-server=" + loopback(l.state.Ports.APIServer),
		"--client-ca=" + l.path("pki", "ca.crt"),
		"--workloads=" + string(l.options.Workloads),
		"--rayfit-binary=" + l.options.RayfitBinary,
		"--ray-bin=" + l.state.RayBin,
		"--container-env=" + markerVariable + "=" + l.Dir(),
	}, nil)
}

func (l *Lab) waitNode(ctx context.Context, name string) error {
	return Eventually(ctx, startTimeout, "wait until "+name+" is ready", func() error {
		if err := l.ended(name); err != nil {
			return err
		}
		raw, err := l.api.get(ctx, "/api/v1/nodes/"+name)
		if err != nil {
			return err
		}
		return condition(raw, "Ready")
	})
}

// startOperator runs the KubeRay operator. It sees Services by their names as
// pods do, for Ray's dashboards.
func (l *Lab) startOperator(ctx context.Context) error {
	argv := []string{
		l.state.Kube, "with-hosts", l.hostsPath(),
		l.state.Operator,
		"--kubeconfig=" + l.Kubeconfig(),
		"--enable-leader-election=false",
		"--metrics-addr=" + loopback(l.state.Ports.Operator),
		"--health-probe-bind-address=" + loopback(l.state.Ports.Health),
	}
	env := append([]string{
		// Its init container waits for the head with a shell loop that is of no
		// use here: a worker's own retries do the same.
		"ENABLE_INIT_CONTAINER_INJECTION=false",
	}, l.options.OperatorEnv...)
	if err := l.start(operator, argv, env); err != nil {
		return err
	}
	err := l.waitHealthy(ctx, operator, "http://"+loopback(l.state.Ports.Health)+"/readyz")
	if err == nil {
		l.say.step("the KubeRay operator is ready")
	}
	return err
}

func (l *Lab) startCertManager(ctx context.Context) error {
	if err := l.applyCRDs(ctx, l.state.CertManagerCRDs); err != nil {
		return err
	}
	argv := []string{l.state.CertManager, "--kubeconfig=" + l.Kubeconfig(), "--health=" + loopback(l.state.Ports.CertManager)}
	if err := l.start(certManager, argv, nil); err != nil {
		return err
	}
	err := l.waitHealthy(ctx, certManager, "http://"+loopback(l.state.Ports.CertManager)+"/readyz")
	if err == nil {
		l.say.step("cert-manager is ready")
	}
	return err
}
