package helm_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

const system = "rayfit-system"

// newLab is an API server without nodes: what is installed is stored, and no pod
// runs.
func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	return labtest.Start(t, lab.Options{AdmissionOnly: true})
}

// onLab runs Helm against a lab's API server, with a release called rayfit.
func onLab(t *testing.T, l *lab.Lab, command string, args ...string) {
	t.Helper()
	args = append([]string{command, "rayfit"}, args...)
	args = append(args, "--kubeconfig="+l.Kubeconfig(), "--namespace="+system)
	if stdout, stderr, err := runHelm(t, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
}

// stored are the API server's objects of a stream of YAML by identity, without
// what it notes of who wrote them, when and how often, and without what the
// tools write down for themselves.
func stored(t *testing.T, l *lab.Lab, stream string) map[string]rig.Object {
	t.Helper()
	cmd := l.KubectlCommand(t.Context(), "get", "-f", "-", "-o", "yaml")
	cmd.Stdin, cmd.Stderr = strings.NewReader(stream), os.Stderr
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []rig.Object }
	if err := yaml.Unmarshal(said, &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]rig.Object{}
	for _, object := range list.Items {
		without(map[string]any(object), "status")
		without(object.Get("metadata"), "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
		without(object.Get("metadata.annotations"), "kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "helm.sh/resource-policy", "deployment.kubernetes.io/revision")
		if annotations, ok := object.Get("metadata.annotations").(map[string]any); ok && len(annotations) == 0 {
			without(object.Get("metadata"), "annotations")
		}
		without(object.Get("metadata.labels"), "app.kubernetes.io/managed-by")
		if object["kind"] == "Service" {
			without(object.Get("spec"), "clusterIP", "clusterIPs")
		}
		found[fmt.Sprintf("%s/%s", object["kind"], object.Name())] = object
	}
	return found
}

func without(fields any, keys ...string) {
	holder, _ := fields.(map[string]any)
	for _, key := range keys {
		delete(holder, key)
	}
}

// The chart is installed, upgraded and uninstalled by the real Helm, and in
// between the API server stores the same as after `kubectl apply -k`.
func TestHelmStoresWhatKustomizeStores(t *testing.T) {
	l := newLab(t)
	overlay := "../../../manifests/overlays/self-managed"
	rendered := labtest.Kubectl(t, l, "kustomize", overlay)
	labtest.Kubectl(t, l, "apply", "-k", overlay)
	wanted := stored(t, l, rendered)
	if len(wanted) < 15 {
		t.Fatalf("only %d objects in %s", len(wanted), overlay)
	}
	labtest.Kubectl(t, l, "delete", "-k", overlay, "--wait=true")

	onLab(t, l, "install", chart, "--create-namespace")
	for identity, got := range stored(t, l, rendered) {
		// Helm makes the namespace without labels, as the documentation says.
		if want := wanted[identity]; identity != "Namespace/"+system && !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nhelm stores:\n%s\nkustomize stores:\n%s", identity, got.YAML(), want.YAML())
		}
	}

	authority, err := l.CA()
	if err != nil {
		t.Fatal(err)
	}
	// What Rayfit has written meanwhile is nobody else's: an upgrade lets it be.
	labtest.Kubectl(t, l, "patch", "validatingwebhookconfiguration", "rayfit-validating", "--type=json", `--patch=[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+base64.StdEncoding.EncodeToString(authority)+`"}]`)
	labtest.Kubectl(t, l, "patch", "secret", "rayfit-self-managed-certs", "-n", system, "--type=merge", `--patch={"data":{"kept":"eWVz"}}`)
	onLab(t, l, "upgrade", chart, "--set=failClosed=true")
	now := stored(t, l, rendered)
	webhook := now["ValidatingWebhookConfiguration/rayfit-validating"]
	if webhook.Get("webhooks[0].failurePolicy") != "Fail" || webhook.Get("webhooks[0].clientConfig.caBundle") == nil {
		t.Errorf("after the upgrade:\n%s", webhook.YAML())
	}
	if replicas := now["Deployment/rayfit"].Get("spec.replicas"); replicas != 3.0 {
		t.Errorf("%v replicas where the webhooks fail closed", replicas)
	}
	if now["Secret/rayfit-self-managed-certs"].Get("data.kept") != "eWVz" {
		t.Error("the upgrade takes the certificates away")
	}

	uninstallLeavesNothing(t, l)
}

// uninstallLeavesNothing uninstalls while no webhook answers and all of them fail
// closed.
func uninstallLeavesNothing(t *testing.T, l *lab.Lab) {
	t.Helper()
	if _, _, err := l.Apply(rig.RayCluster("default", "blocked").YAML()); err == nil {
		t.Error("a RayCluster is stored although the webhooks fail closed and none answers")
	}
	if _, stderr, err := l.Apply("{apiVersion: rayfit.dev/v1alpha1, kind: RayPolicy, metadata: {name: kept}, spec: {}}"); err != nil {
		t.Fatal(stderr)
	}
	onLab(t, l, "uninstall")
	labtest.Kubectl(t, l, "get", "raypolicy", "kept")
	kinds := "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,deployments,services,secrets,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,validatingadmissionpolicies,validatingadmissionpolicybindings"
	err := lab.Eventually(t.Context(), time.Minute, "nothing is left", func() error {
		left, _, err := l.Kubectl("get", kinds, "-A", "-l", "app.kubernetes.io/name=rayfit", "-o", "name")
		if err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, stderr, err := l.Apply(rig.RayCluster("default", "free").YAML()); err != nil {
		t.Errorf("after the uninstall a RayCluster is refused: %s", stderr)
	}
	labtest.Kubectl(t, l, "delete", "namespace", system, "--timeout=60s")
}

// Helm takes no object that another release has, so that two releases beside each other share none. One
// serves the webhooks and the other scales, from a namespace and for a namespace of its own.
func TestASecondReleaseOnlyScales(t *testing.T) {
	l := newLab(t)
	labtest.Kubectl(t, l, "create", "namespace", "team-a")
	onLab(t, l, "install", chart, "--create-namespace", "--set=controller.enabled=false")
	further := func(command string, args ...string) {
		t.Helper()
		args = append([]string{command, "scaler", "--kubeconfig=" + l.Kubeconfig(), "--namespace=rayfit-a"}, args...)
		if stdout, stderr, err := runHelm(t, args...); err != nil {
			t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
		}
	}
	further("install", chart, "--create-namespace", "--set=webhook.enabled=false,crds.enabled=false,onlyNamespaces={team-a}")
	labtest.Kubectl(t, l, "get", "deployment", "rayfit-controller", "-n", "rayfit-a")
	labtest.Kubectl(t, l, "get", "role", "rayfit-scaling", "-n", "team-a")
	labtest.Kubectl(t, l, "get", "validatingadmissionpolicy", "rayfit-pod-writes-rayfit-a")
	further("uninstall")
	labtest.Kubectl(t, l, "get", "validatingwebhookconfiguration", "rayfit-validating")
	labtest.Kubectl(t, l, "get", "clusterrole", "rayfit-watch")
	onLab(t, l, "uninstall")
}
