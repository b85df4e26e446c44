package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// The two parts of the VerticalPodAutoscaler that write pods. The third, which
// recommends, is left out: tests write recommendations themselves.
const (
	// VPAUpdater resizes and evicts pods.
	VPAUpdater   = "vpa-updater"
	vpaAdmission = "vpa-admission-controller"
)

// startVPA installs the VerticalPodAutoscaler's definitions and rights as its
// module has them, and runs its updater and admission controller as those accounts.
func (l *Lab) startVPA(ctx context.Context) error {
	if err := l.createVPAObjects(ctx); err != nil {
		return err
	}
	return l.runVPA(ctx)
}

func (l *Lab) createVPAObjects(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join(l.state.VPAManifests, "vpa-v1-crd-gen.yaml"))
	if err != nil {
		return fmt.Errorf("read the definitions of the VerticalPodAutoscaler: %w", err)
	}
	for _, document := range documents(content) {
		name, err := l.createCRD(ctx, document)
		if err != nil {
			return fmt.Errorf("create a definition of the VerticalPodAutoscaler: %w", err)
		}
		if err := l.waitEstablished(ctx, name); err != nil {
			return err
		}
	}
	_, _, err = runKubectl(l.KubectlCommand(ctx, "create", "-f", filepath.Join(l.state.VPAManifests, "vpa-rbac.yaml")), "")
	return err
}

func (l *Lab) runVPA(ctx context.Context) error {
	if err := l.startVPAAdmission(); err != nil {
		return err
	}
	err := l.startVPAPart(VPAUpdater, l.state.VPAUpdater, l.state.Ports.VPAUpdater,
		// A test should not wait for a minute between two looks.
		"--updater-interval=1s")
	if err != nil {
		return err
	}
	// It registers itself some seconds after it has begun to listen.
	err = Eventually(ctx, startTimeout, "wait for the webhook of the VerticalPodAutoscaler", func() error {
		if err := errors.Join(l.ended(vpaAdmission), l.ended(VPAUpdater)); err != nil {
			return err
		}
		_, err := l.api.call(ctx, http.MethodGet, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/vpa-webhook-config", "", nil)
		return err
	})
	if err == nil {
		l.say.step("the VerticalPodAutoscaler is ready")
	}
	return err
}

func (l *Lab) startVPAAdmission() error {
	cert, key, err := l.ServingCertificate([]string{"localhost"}, "127.0.0.1")
	if err != nil {
		return err
	}
	if err := (certificate{cert: cert, key: key}).write(l.path("pki"), vpaAdmission); err != nil {
		return err
	}
	port := strconv.Itoa(l.state.Ports.VPAWebhook)
	return l.startVPAPart(vpaAdmission, l.state.VPAAdmission, l.state.Ports.VPAAdmission,
		"--client-ca-file="+l.path("pki", "ca.crt"),
		"--tls-cert-file="+l.path("pki", vpaAdmission+".crt"),
		"--tls-private-key="+l.path("pki", vpaAdmission+".key"),
		"--port="+port, "--register-by-url", "--webhook-address=https://127.0.0.1", "--webhook-port="+port)
}

func (l *Lab) startVPAPart(name, binary string, metrics int, args ...string) error {
	credentials, err := l.KubeconfigFor("system:serviceaccount:kube-system:"+name, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	if err != nil {
		return err
	}
	argv := append([]string{binary, "--kubeconfig=" + credentials, "--address=" + loopback(metrics), "--feature-gates=InPlace=true"}, args...)
	return l.start(name, argv, nil)
}

// vpaManifests is the folder with the VerticalPodAutoscaler's definitions and rights.
func vpaManifests(ctx context.Context) (string, error) {
	dir, err := Module(ctx, VPAModule)
	return filepath.Join(dir, "deploy"), err
}
