package install

import (
	"context"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// renew has cert-manager issue a certificate again, as `cmctl renew` does.
func renew(t *testing.T, l *lab.Lab, certificate string) {
	t.Helper()
	labtest.Kubectl(t, l, "patch", "certificate", certificate, "-n", system, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"renewed by a test","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`)
}

// authority is the certificate of cert-manager's authority for us.
func authority(t *testing.T, l *lab.Lab) string {
	t.Helper()
	return labtest.Kubectl(t, l, "get", "secret", "rayfit-ca", "-n", system, `-o=jsonpath={.data.tls\.crt}`)
}

func TestCertManagerRotatesCertificatesUnderLoad(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--cert-manager", "--fail-closed", "--replicas=2"))
	readyPods(t, l, 2)
	if _, _, err := l.Apply(example(t, "bad.yaml")); err == nil {
		t.Fatal("a bad RayCluster was stored")
	}

	object := goodCluster(t)
	calls := startLoad(t, 4, 40, func(ctx context.Context) error { return create(ctx, l, object) })
	connections := startLoad(t, 1, 2, (&verifier{l: l}).call)
	now := allServe(t, l, time.Minute, "one certificate", func(served) bool { return true })
	other := func(s served) bool { return s.leaf != now.leaf }

	renew(t, l, "rayfit-webhook")
	now = allServe(t, l, 2*time.Minute, "the renewed certificate", other)

	old := authority(t, l)
	renew(t, l, "rayfit-ca")
	labtest.Eventually(t, time.Minute, "a renewed authority", func() error {
		if authority(t, l) == old {
			return context.DeadlineExceeded
		}
		return nil
	})
	renew(t, l, "rayfit-webhook")
	now = allServe(t, l, 2*time.Minute, "a certificate of the renewed authority", other)

	labtest.Kubectl(t, l, "delete", "secret", "rayfit-webhook-certs", "-n", system)
	allServe(t, l, 2*time.Minute, "a certificate after its Secret was deleted", other)

	connections.end(t, "new connections during rotations by cert-manager", 10)
	calls.end(t, "calls during rotations by cert-manager", 100)
	noneForbidden(t, l)
}
