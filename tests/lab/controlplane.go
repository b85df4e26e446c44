package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// serviceRange is where Services get their addresses. Nothing listens there:
// only the service proxy gives these addresses a meaning.
const serviceRange = "10.0.0.0/24"

const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	serviceProxy      = "service-proxy"
)

// startTimeout is when a component that does not come up is given up, on a machine that is
// busy with other things too.
const startTimeout = 5 * time.Minute

// binary returns the command line's beginning for a Kubernetes component.
func (l *Lab) binary(name string) []string {
	if l.state.Assets != "" {
		return []string{filepath.Join(l.state.Assets, name)}
	}
	return []string{l.state.Kube, name}
}

func (l *Lab) startEtcd() error {
	client, peer := "http://"+loopback(l.state.Ports.EtcdClient), "http://"+loopback(l.state.Ports.EtcdPeer)
	return l.start(etcd, append(l.binary(etcd),
		"--name=lab",
		"--data-dir="+l.path("etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=lab="+peer,
		"--unsafe-no-fsync",
		"--log-level=warn",
	), nil)
}

func (l *Lab) startAPIServer(ctx context.Context) error {
	if err := l.writeAuditPolicy(); err != nil {
		return err
	}
	if err := l.start(apiServer, append(l.binary(apiServer), l.apiServerArgs()...), nil); err != nil {
		return err
	}
	return Eventually(ctx, startTimeout, "wait for the API server's /readyz", func() error {
		if err := l.ended(etcd); err != nil {
			return err
		}
		if err := l.ended(apiServer); err != nil {
			return err
		}
		_, err := l.api.get(ctx, "/readyz")
		return err
	})
}

func (l *Lab) apiServerArgs() []string {
	pki := l.path("pki")
	args := []string{
		"--etcd-servers=http://" + loopback(l.state.Ports.EtcdClient),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.state.Ports.APIServer),
		// No address of this machine may become part of the lab, and loopback
		// is refused for endpoints: the kubernetes Service gets none.
		"--advertise-address=192.0.2.1",
		"--endpoint-reconciler-type=none",
		"--external-hostname=127.0.0.1",
		"--cert-dir=" + pki,
		"--tls-cert-file=" + filepath.Join(pki, "apiserver.crt"),
		"--tls-private-key-file=" + filepath.Join(pki, "apiserver.key"),
		"--client-ca-file=" + filepath.Join(pki, "ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(pki, "service-account.key"),
		"--service-account-signing-key-file=" + filepath.Join(pki, "service-account.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--egress-selector-config-file=" + l.path("config", "egress.yaml"),
		"--kubelet-client-certificate=" + filepath.Join(pki, "kubelet-client.crt"),
		"--kubelet-client-key=" + filepath.Join(pki, "kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
	}
	if !l.hasControllerManager() {
		// Nobody makes the default service accounts that the plug-in demands.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if l.options.Audit != AuditOff {
		args = append(args, "--audit-policy-file="+l.path("config", "audit.yaml"), "--audit-log-path="+l.AuditLog())
	}
	return append(args, l.options.APIServerArgs...)
}

// hasControllerManager is false only with foreign binaries, which by envtest's
// convention are etcd, kube-apiserver and kubectl.
func (l *Lab) hasControllerManager() bool {
	if l.state.Assets == "" {
		return true
	}
	_, err := os.Stat(filepath.Join(l.state.Assets, controllerManager))
	return err == nil
}

func (l *Lab) startControllerManager() error {
	pki := l.path("pki")
	return l.start(controllerManager, append(l.binary(controllerManager),
		"--kubeconfig="+l.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers="+l.controllers(),
		// A test that waits for garbage collection should not wait for a rate limit.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--root-ca-file="+filepath.Join(pki, "ca.crt"),
		"--service-account-private-key-file="+filepath.Join(pki, "service-account.key"),
		"--cluster-signing-cert-file="+filepath.Join(pki, "ca.crt"),
		"--cluster-signing-key-file="+filepath.Join(pki, "ca.key"),
		// Its default lies outside the lab, and it would be made.
		"--flex-volume-plugin-dir="+l.path("tmp", "flexvolume"),
	), nil)
}

// controllers are those that Kubernetes has, without those that have nothing to do.
func (l *Lab) controllers() string {
	if l.options.PodNetwork {
		return "*,-node-ipam-controller"
	}
	// Endpoints on loopback are refused by the API server's validation: these
	// controllers could only fill the events. The service proxy looks at pods itself.
	return "*,-node-ipam-controller,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller"
}

func (l *Lab) startScheduler() error {
	return l.start(scheduler, append(l.binary(scheduler),
		"--kubeconfig="+l.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
	), nil)
}

// RestartAPIServer ends the API server and starts it again on the same port,
// with etcd's data as it was.
func (l *Lab) RestartAPIServer(ctx context.Context) error {
	if err := l.StopAPIServer(); err != nil {
		return err
	}
	return l.startAPIServer(ctx)
}

// StopAPIServer ends the API server alone, to see how others bear it;
// RestartAPIServer brings it back.
func (l *Lab) StopAPIServer() error { return l.stop(2*time.Second, apiServer) }

// SetAudit changes the audit level; the API server reads it at start only, so
// this restarts it.
func (l *Lab) SetAudit(ctx context.Context, level AuditLevel) error {
	l.options.Audit = level
	if err := l.saveState(); err != nil {
		return err
	}
	return l.RestartAPIServer(ctx)
}

// AuditLog is the path of the API server's audit log, one JSON event a line.
func (l *Lab) AuditLog() string { return l.path("logs", "audit.jsonl") }

func (l *Lab) writeAuditPolicy() error {
	policy := fmt.Appendf(nil, `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: %s
`, l.options.Audit)
	if l.options.Audit == AuditOff {
		return nil
	}
	return writeFile(l.path("config", "audit.yaml"), policy)
}

// writeEgress sends what the API server dials inside the cluster (webhooks
// behind Services, kubelets) through the lab's service proxy. Webhooks with a
// plain URL are still dialled directly.
func (l *Lab) writeEgress() error {
	return writeFile(l.path("config", "egress.yaml"), fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`, proxySocket(l.state.Octet)))
}

// writeCredentials makes the authority, all certificates, and the kubeconfig.
func (l *Lab) writeCredentials() error {
	pki := l.path("pki")
	ca, err := newAuthority(pki)
	if err != nil {
		return err
	}
	serving, err := ca.server("kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)})
	if err != nil {
		return err
	}
	if err := serving.write(pki, "apiserver"); err != nil {
		return err
	}
	toKubelet, err := ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := toKubelet.write(pki, "kubelet-client"); err != nil {
		return err
	}
	if err := newSigningKey(pki); err != nil {
		return err
	}
	return l.writeKubeconfig(l.Kubeconfig(), "lab-admin", "system:masters")
}
