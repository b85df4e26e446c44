package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// closing is a namespace of Ray objects that are there before anything fails.
const closing = "team-closing"

// inClosing is a RayCluster of that namespace.
func inClosing(t *testing.T, name string) string {
	t.Helper()
	text := strings.Replace(example(t, "good.yaml"), "namespace: "+team, "namespace: "+closing, 1)
	return strings.Replace(text, "name: notebook", "name: "+name, 1)
}

// crash kills all replicas at once and keeps them from starting again.
func crash(t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := l.CrashNode(1); err != nil {
		t.Fatal(err)
	}
}

// recovered lets them start again, and waits until objects are judged and defaulted.
func recovered(t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := l.StartNode(1); err != nil {
		t.Fatal(err)
	}
	judged(t, l)
}

func judged(t *testing.T, l *lab.Lab) {
	t.Helper()
	labtest.Eventually(t, time.Minute, "objects are judged again", func() error {
		if err := create(t.Context(), l, goodCluster(t)); err != nil {
			return err
		}
		said, err := kubectlWith(l, example(t, "bad.yaml"), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(said, "rayfit explain RF201") {
			return fmt.Errorf("a bad RayCluster: %w, kubectl says: %s", err, said)
		}
		return nil
	})
}

// failurePolicies are those of the webhooks that judge: Ray objects, RayPolicies, resizes.
func failurePolicies(l *lab.Lab) string {
	stdout, _, _ := l.Kubectl("get", "validatingwebhookconfiguration", "rayfit-validating", "-o", "jsonpath={.webhooks[*].failurePolicy}")
	return stdout
}

const (
	open   = "Ignore Ignore Ignore Ignore Ignore Ignore"
	closed = "Fail Fail Fail Fail Ignore Ignore"
)

// become waits until the webhooks fail open or closed, and the API server knows.
func waitForFailurePolicies(t *testing.T, l *lab.Lab, wanted string) {
	t.Helper()
	labtest.Eventually(t, time.Minute, "the failure policies are "+wanted, func() error {
		if got := failurePolicies(l); got != wanted {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}

func TestAllReplicasDieWhileFailingOpenAndClosed(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--self-managed"))
	readyPods(t, l, 2)
	createClusters(t, l)

	t.Run("open: Ray objects pass", func(t *testing.T) {
		if got := failurePolicies(l); got != open {
			t.Fatalf("at first the failure policies are %q", got)
		}
		crash(t, l)
		if _, stderr, err := l.Apply(example(t, "bad.yaml")); err != nil {
			t.Errorf("a bad RayCluster is refused: %s", stderr)
		}
		labtest.Kubectl(t, l, "delete", "raycluster", "notebook", "-n", team)
		recovered(t, l)
	})

	if _, _, err := l.Apply("apiVersion: rayfit.dev/v1alpha1\nkind: RayPolicy\nmetadata: {name: strict}\nspec: {failClosed: true}\n"); err != nil {
		t.Fatal(err)
	}
	waitForFailurePolicies(t, l, closed)
	labtest.Kubectl(t, l, "wait", "rayp/strict", "--for=condition=FailClosed", "--timeout=60s")

	t.Run("closed: Ray objects are refused, and nothing else", func(t *testing.T) {
		crash(t, l)
		refused(t, l)
		othersAreStored(t, l)
		recovered(t, l) // it did not stand in its own way
	})
	t.Run("closed: the cluster starts after a full stop", func(t *testing.T) {
		if err := l.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		judged(t, l)
		waitForFailurePolicies(t, l, closed)
	})
	t.Run("released: it needs no replica", func(t *testing.T) {
		crash(t, l)
		said := rayfit(t, "release", "--kubeconfig", l.Kubeconfig())
		if !strings.HasPrefix(said, "released") || failurePolicies(l) != open {
			t.Errorf("release says %q, and the failure policies are %q", said, failurePolicies(l))
		}
		labtest.Eventually(t, time.Minute, "a Ray object passes", func() error {
			_, err := kubectlWith(l, inClosing(t, "released"), "create", "--dry-run=server", "-f", "-")
			return err
		})
		recovered(t, l)
		waitForFailurePolicies(t, l, closed) // as the policy still asks
	})
	t.Run("undone: by one field", func(t *testing.T) {
		labtest.Kubectl(t, l, "patch", "rayp", "strict", "--type=merge", "-p", `{"spec":{"failClosed":false}}`)
		waitForFailurePolicies(t, l, open)
	})
}

// inhabit makes the namespace with its Ray objects, one of which has a finalizer.
func createClusters(t *testing.T, l *lab.Lab) {
	t.Helper()
	labtest.Kubectl(t, l, "create", "namespace", closing)
	t.Cleanup(func() { labtest.Kubectl(t, l, "delete", "namespace", closing) })
	for _, name := range []string{"kept", "held", "gone"} {
		if _, _, err := l.Apply(inClosing(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	labtest.Kubectl(t, l, "patch", "raycluster", "held", "-n", closing, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/held"]}}`)
}

// refused checks what a person sees who makes or changes a Ray object.
func refused(t *testing.T, l *lab.Lab) {
	t.Helper()
	const why = `failed calling webhook "validate.raycluster.rayfit.dev"`
	said, err := kubectlWith(l, inClosing(t, "new"), "create", "-f", "-")
	if err == nil || !strings.Contains(said, why) {
		t.Errorf("a new RayCluster: %v, kubectl says: %s", err, said)
	}
	_, said, err = l.Kubectl("patch", "raycluster", "kept", "-n", closing, "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	if err == nil || !strings.Contains(said, why) {
		t.Errorf("a change of a RayCluster: %v, kubectl says: %s", err, said)
	}
}

// goesOn checks that nothing else waits for a webhook.
func othersAreStored(t *testing.T, l *lab.Lab) {
	t.Helper()
	on := func(name string, args ...string) {
		t.Helper()
		if _, said, err := l.Kubectl(append(args, "raycluster", name, "-n", closing)...); err != nil {
			t.Errorf("kubectl %s %s: %s", strings.Join(args, " "), name, said)
		}
	}
	on("kept", "patch", "--subresource=status", "--type=merge", "-p", `{"status":{"reason":"seen"}}`)
	on("kept", "patch", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/kept"]}}`)
	on("kept", "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	on("gone", "delete")
	on("held", "delete", "--wait=false")
	on("held", "patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	for _, namespace := range []string{"kube-system", system} {
		labtest.Kubectl(t, l, "create", "configmap", "goes-on", "-n", namespace)
		labtest.Kubectl(t, l, "delete", "configmap", "goes-on", "-n", namespace)
		elsewhere := strings.Replace(inClosing(t, "goes-on"), "namespace: "+closing, "namespace: "+namespace, 1)
		if said, err := kubectlWith(l, elsewhere, "create", "--dry-run=server", "-f", "-"); err != nil {
			t.Errorf("a RayCluster in %s: %s", namespace, said)
		}
	}
	// With a RayCluster in it.
	labtest.Kubectl(t, l, "delete", "namespace", closing, "--timeout=60s")
	labtest.Kubectl(t, l, "create", "namespace", closing)
}
