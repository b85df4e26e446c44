package policy_test

import (
	"rayfit.dev/rayfit/tests/lab/labtest"
	"strings"
	"testing"
)

// pod is one of a RayCluster, as far as admission sees it. Nothing runs here.
const pod = `
apiVersion: v1
kind: Pod
metadata: {name: worker, labels: {ray.io/cluster: demo, ray.io/group: small}}
spec:
  containers:
  - name: ray-worker
    image: rayproject/ray:2.60.0
    resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
`

// resize is what kubectl says to somebody who resizes the pod, without doing it.
func resize(t *testing.T, namespace, user string) (said string, err error) {
	t.Helper()
	args := []string{
		"patch", "pod", "worker", "-n", namespace, "--subresource=resize", "--dry-run=server", "--type=strategic",
		"-p", `{"spec":{"containers":[{"name":"ray-worker","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}}`,
	}
	if user == "" {
		_, said, err = shared.Lab.Kubectl(args...)
	} else {
		_, said, err = shared.Lab.KubectlAs(user, []string{"system:masters"}, args...)
	}
	return said, err
}

func TestAPodOfARayClusterIsResizedByItsScalerOnly(t *testing.T) {
	ns := namespace(t, "resized")
	if _, _, err := shared.Lab.Apply(strings.Replace(pod, "labels:", "namespace: "+ns+", labels:", 1)); err != nil {
		t.Fatal(err)
	}
	const warning = `Warning: RF401 spec.containers: "lab-admin" resizes a pod of RayCluster "demo"`
	if said, err := resize(t, ns, ""); err != nil || !strings.Contains(said, warning) {
		t.Errorf("without a policy: %v, kubectl says: %s", err, said)
	}

	policy(t, "guarding", "{match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+ns+"}}}, rules: {RF401: Enforce}}")
	labtest.Eventually(t, patience, "wait until the policy is in force", func() error {
		said, err := resize(t, ns, "")
		if err == nil || !strings.Contains(said, "rayfit explain RF401") || !strings.Contains(said, "by policy guarding") {
			return is(said, "a denial")
		}
		return nil
	})
	if said, err := resize(t, ns, "system:serviceaccount:elsewhere:vpa-updater"); err == nil {
		t.Errorf("another autoscaler resizes it: %s", said)
	}
	for _, scaler := range []string{
		"system:serviceaccount:rayfit-system:rayfit-controller",
		"system:serviceaccount:" + ns + ":demo", // as which Ray's own autoscaler runs
		"system:node:node-1",
	} {
		if said, err := resize(t, ns, scaler); err != nil || said != "" {
			t.Errorf("%s: %v, kubectl says: %s", scaler, err, said)
		}
	}

	// Other pods are nobody's business, nor are other changes of this one.
	must(t, "label", "pod", "worker", "-n", ns, "changed=yes")
	must(t, "label", "pod", "worker", "-n", ns, "ray.io/cluster-")
	if said, err := resize(t, ns, ""); err != nil || said != "" {
		t.Errorf("a pod of no Ray cluster: %v, kubectl says: %s", err, said)
	}
}
