package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	operator    = "operator"
	certManager = "certmanager"
)

// OperatorUser is who the KubeRay operator is for the API server and for
// webhooks: the service account of an install from KubeRay's Helm chart.
const OperatorUser = "system:serviceaccount:kuberay-system:kuberay-operator"

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

// startNode starts the kubelet of the lab's n-th node.
func (l *Lab) startNode(n int) error {
	k := nodeConfig{
		name: NodeName(n), dir: l.path("nodes", NodeName(n)), port: l.state.Ports.Kubelets[n-1],
		cores: l.options.Cores, memory: l.options.Memory, workloads: l.options.Workloads,
		network: l.podNetwork(n),
	}
	if l.options.PodNetwork {
		k.network, k.link = fmt.Sprintf("198.18.%d", l.state.Octet), fmt.Sprintf("rayfit-pods%d", l.state.Octet)
	}
	return l.startKubelet(k)
}

// podNetwork is the beginning of the addresses of a node's pods on loopback.
func (l *Lab) podNetwork(n int) string { return fmt.Sprintf("127.%d.%d", l.state.Octet, n) }

// nodeConfig is what tells the kubelet of one node from that of another.
type nodeConfig struct {
	name, dir     string
	port, cores   int
	memory        string
	workloads     Workloads
	network, link string
}

// startKubelet starts a kubelet with a node's own identity, so that the API
// server's node authorizer decides what it may read.
func (l *Lab) startKubelet(k nodeConfig) error {
	credentials, err := l.KubeconfigFor("system:node:"+k.name, "system:nodes")
	if err != nil {
		return err
	}
	hosts, err := l.outsideArgs()
	if err != nil {
		return err
	}
	return l.start(k.name, append([]string{
		l.state.Kube, "node",
		"--name=" + k.name,
		"--kubeconfig=" + credentials,
		"--dir=" + k.dir,
		"--cores=" + strconv.Itoa(k.cores),
		"--memory=" + k.memory,
		"--cpu-manager=" + l.options.CPUManager,
		"--port=" + strconv.Itoa(k.port),
		"--pod-network=" + k.network,
		"--pod-link=" + k.link,
		"--hosts=" + l.hostsPath(),
		"--api-server=" + loopback(l.state.Ports.APIServer),
		"--client-ca=" + l.path("pki", "ca.crt"),
		"--workloads=" + string(k.workloads),
		"--rayfit-binary=" + l.options.RayfitBinary,
		"--path=" + strings.Trim(l.state.RayBin+":"+l.state.RedisBin, ":"),
		"--container-env=" + markerVariable + "=" + l.Dir(),
	}, hosts...), nil)
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
		// The kubelet leaves its address out where it cannot tell it at once, as while interfaces come and go, and tries
		// again after ten seconds. Until then nothing can be asked of its pods.
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			return fmt.Errorf("read node %s: %w", name, err)
		}
		if len(n.Status.Addresses) == 0 {
			return errors.New("it has no address")
		}
		return condition(raw, "Ready")
	})
}

// startOperator runs the KubeRay operator. It sees Services by their names as
// pods do, for Ray's dashboards.
func (l *Lab) startOperator(ctx context.Context) error {
	credentials, err := l.KubeconfigFor(OperatorUser, "system:masters")
	if err != nil {
		return err
	}
	argv := append([]string{
		l.state.Kube, "with-hosts", l.path("hosts", outside),
		l.state.Operator,
		"--kubeconfig=" + credentials,
		"--enable-leader-election=false",
		"--metrics-addr=" + loopback(l.state.Ports.Operator),
		"--health-probe-bind-address=" + loopback(l.state.Ports.Health),
	}, l.options.OperatorArgs...)
	env := append([]string{
		// Its init container waits for the head with a shell loop that is of no
		// use here: a worker's own retries do the same.
		"ENABLE_INIT_CONTAINER_INJECTION=false",
	}, l.options.OperatorEnv...)
	if l.options.OperatorWebhooks {
		if err := l.prepareOperatorWebhook(); err != nil {
			return err
		}
		env = append(env, "ENABLE_WEBHOOKS=true")
	}
	if err := l.start(operator, argv, env); err != nil {
		return err
	}
	err = l.waitHealthy(ctx, operator, "http://"+loopback(l.state.Ports.Health)+"/readyz")
	if err == nil {
		l.say.step("the KubeRay operator is ready")
	}
	return err
}

// RestartOperator ends the KubeRay operator and starts it again, as an upgrade
// or an eviction does.
func (l *Lab) RestartOperator(ctx context.Context) error {
	if err := l.stop(stopTimeout, operator); err != nil {
		return err
	}
	return l.startOperator(ctx)
}

// prepareOperatorWebhook puts a certificate where the operator looks for it:
// below the directory for temporary files, which in the lab is its own.
func (l *Lab) prepareOperatorWebhook() error {
	dir := l.path("tmp", "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory for the operator's certificate: %w", err)
	}
	cert, key, err := l.ServingCertificate([]string{"localhost"}, "127.0.0.1")
	if err != nil {
		return err
	}
	return certificate{cert: cert, key: key}.write(dir, "tls")
}

// OperatorWebhook is where the operator's own webhook for RayClusters listens
// with Options.OperatorWebhooks. The port is fixed in the operator.
func (l *Lab) OperatorWebhook() string {
	return "https://127.0.0.1:9443/validate-ray-io-v1-raycluster"
}

func (l *Lab) startCertManager(ctx context.Context) error {
	if err := l.createCRDs(ctx, l.state.CertManagerCRDs); err != nil {
		return err
	}
	return l.runCertManager(ctx)
}

func (l *Lab) runCertManager(ctx context.Context) error {
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
