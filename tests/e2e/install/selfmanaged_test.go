package install

import (
	"context"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab/labtest"
)

// shortLivedCertificates is an install whose certificates live for seconds: the
// shortest that leave the replacement of an authority its time.
func shortLivedCertificates(t *testing.T) string {
	t.Helper()
	manifests := rayfit(t, "manifests", "--self-managed", "--fail-closed", "--replicas=2")
	const flag = "- --self-managed-certs\n"
	before, after, found := strings.Cut(manifests, flag)
	if !found {
		t.Fatalf("no %q in the manifests", flag)
	}
	indent := before[strings.LastIndex(before, "\n")+1:]
	for _, more := range []string{"--ca-propagation=2s", "--cert-lifetime=40s"} {
		before += "- " + more + "\n" + indent
	}
	return before + flag + after
}

func TestOwnCertificatesRotateUnderLoadAlsoWhileAReplicaGoes(t *testing.T) {
	l := cluster(t)
	install(t, l, shortLivedCertificates(t))
	victim := readyPods(t, l, 2)[0].Metadata.Name

	object := goodCluster(t)
	calls := startLoad(t, 4, 40, func(ctx context.Context) error { return create(ctx, l, object) })
	connections := startLoad(t, 1, 2, (&verifier{l: l}).call)
	now := allServe(t, l, time.Minute, "one certificate", func(served) bool { return true })
	first := now
	other := func(s served) bool { return s.leaf != now.leaf }

	now = allServe(t, l, time.Minute, "a second certificate", other)
	labtest.Kubectl(t, l, "delete", "pod", victim, "-n", system, "--wait=false")
	now = allServe(t, l, time.Minute, "a third certificate, while a replica goes", other)
	labtest.Kubectl(t, l, "patch", "secret", "rayfit-self-managed-certs", "-n", system, "--type=json",
		"-p", `[{"op": "remove", "path": "/data/ca.key"}]`)
	now = allServe(t, l, time.Minute, "a certificate of another authority", func(s served) bool { return s.authority != first.authority })
	allServe(t, l, time.Minute, "one more certificate", other)

	connections.end(t, "new connections during our own rotations", 30)
	calls.end(t, "calls during our own rotations", 100)
	noneForbidden(t, l)
}
