package rights_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// sleep is a command that ends when it is told to.
var sleep = []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"}

// Whoever adds a right must show here what it is for; whoever no longer needs
// one is told.
func TestAnInstallNeedsEachOfItsRightsAndNoOther(t *testing.T) {
	s := newSite(t)
	s.apply(t, rig.OpenReports)
	manifests := s.install(t, "--self-managed", "--ray-auth", "--initial-sizes")
	granted := grants(t, manifests)

	s.audits(t)
	s.scales(t, "scaled", 2)
	// A replica that goes takes its Lease with it.
	pods := strings.Fields(s.must(t, "get", "pods", "-n", system, "-l", "app.kubernetes.io/component=controller", "-o", "name"))
	s.must(t, "delete", pods[0], "-n", system, "--wait=false")

	labtest.Eventually(t, patience, "each right was needed", func() error {
		left, err := unused(s.Lab, granted)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d of %d rights were not: %v", len(left), len(granted), left)
		}
		return err
	})
	s.noneForbidden(t, 0)
	s.writesAreBounded(t)

	// In chosen namespaces the rights are others. What the pods ask for while
	// these are taken from them does not count.
	s.uninstall(t, manifests)
	before, err := requests(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	s.install(t, "--self-managed", "--ray-auth", "--initial-sizes", "--only-namespace="+scaling.Namespace)
	s.scales(t, "again", 1)
	if s.noneForbidden(t, len(before)) == len(before) {
		t.Error("the account has asked for nothing")
	}
}

// writesAreBounded asks, as the accounts, for what no role can forbid: of who
// patches pods and RayClusters an image of their own, of who makes a Lease that
// of others. kubectl reads what it patches, which an account may not; so it is an
// admin besides.
func (s *site) writesAreBounded(t *testing.T) {
	t.Helper()
	webhooks := s.must(t, "get", "pods", "-n", system, "-l", "app.kubernetes.io/component=admission", "-o", "jsonpath={.items[0].metadata.name}")
	worker := s.must(t, "get", "pods", "-n", scaling.Namespace, "-l", "ray.io/node-type=worker", "-o", "jsonpath={.items[0].metadata.name}")
	container := s.must(t, "get", "pod", worker, "-n", scaling.Namespace, "-o", "jsonpath={.spec.containers[0].name}")
	image := func(container string) string {
		return `{"spec":{"containers":[{"name":"` + container + `","image":"attacker"}]}}`
	}
	metadata := func(field, value string) string { return `{"metadata":{"` + field + `":` + value + `}}` }
	group := func(operations string) string {
		return "[" + strings.ReplaceAll(operations, "@", "/spec/workerGroupSpecs/0") + "]"
	}
	const sizes, ours = "changes nothing else", "annotations of its own"
	for _, attempt := range []struct{ namespace, object, patch, answer string }{
		{system, "pod/" + webhooks, image("rayfit"), "none of its own"},
		{system, "pod/" + webhooks, metadata("annotations", `{"ray.io/ippr-status":"b"}`), "none of its own"},
		{scaling.Namespace, "pod/" + worker, image(container), sizes},
		{scaling.Namespace, "pod/" + worker, metadata("labels", `{"a":"b"}`), ours},
		{scaling.Namespace, "pod/" + worker, metadata("labels", `{"ray.io/cluster":null}`), ours},
		{scaling.Namespace, "pod/" + worker, metadata("finalizers", `["a.example/b"]`), ours},
		{scaling.Namespace, "pod/" + worker, metadata("ownerReferences", `[{"$patch":"replace"}]`), ours},
		{scaling.Namespace, "pod/" + worker, metadata("annotations", `{"a":"b"}`), ours},
		{scaling.Namespace, "pod/" + worker, metadata("annotations", `{"ray.io/ippr-status":"b","karpenter.sh/do-not-disrupt":"true"}`), ""},
		{scaling.Namespace, "raycluster/scaled", metadata("labels", `{"a":"b"}`), ours},
		{scaling.Namespace, "raycluster/scaled", metadata("finalizers", `["a.example/b"]`), ours},
		{scaling.Namespace, "raycluster/scaled", metadata("annotations", `{"ray.io/ippr":null}`), ours},
		// With the mode, admission changes the defaults that go with it.
		{scaling.Namespace, "raycluster/scaled", metadata("annotations", `{"rayfit.dev/reconcile":"ray"}`), sizes},
		{scaling.Namespace, "raycluster/scaled", metadata("annotations", `{"rayfit.dev/scaled-by":"nobody"}`), ""},
		{scaling.Namespace, "raycluster/scaled", `{"spec":{"suspend":true}}`, sizes},
		{scaling.Namespace, "raycluster/scaled", `{"spec":{"headGroupSpec":{"serviceType":"NodePort"}}}`, sizes},
		{scaling.Namespace, "raycluster/scaled", `{"spec":{"workerGroupSpecs":null}}`, sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"replace","path":"@/template/spec/containers/0/image","value":"attacker"}`), sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"add","path":"@/maxReplicas","value":9}`), sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"add","path":"@/suspend","value":true}`), sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"remove","path":"@"}`), sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"move","from":"@","path":"/spec/workerGroupSpecs/1"}`), sizes},
		{scaling.Namespace, "raycluster/scaled", group(`{"op":"add","path":"@/replicas","value":2},{"op":"add","path":"@/scaleStrategy","value":{"workersToDelete":["w"]}}`), ""},
	} {
		kind := "merge"
		switch {
		case strings.HasPrefix(attempt.patch, "["):
			kind = "json"
		case strings.HasPrefix(attempt.object, "pod/"):
			kind = "strategic"
		}
		s.attempt(t, "rayfit-controller", attempt.answer, "patch", attempt.object, "-n", attempt.namespace, "--type="+kind, "--patch="+attempt.patch)
	}
	// An account that reads nothing but its own Lease may make no other one.
	for account, lease := range map[string]string{"rayfit": "rayfit-leader", "rayfit-controller": "rayfit-audit"} {
		s.attempt(t, account, "makes the Lease for that", "create", "-n", system, "-f", s.file(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "+lease+"}}"))
	}
}

// attempt makes a request as an account, which is refused with the answer, or let
// through if there is none.
func (s *site) attempt(t *testing.T, account, answer string, request ...string) {
	t.Helper()
	_, said, err := s.Lab.KubectlAs(accounts+account, []string{"system:masters"}, append(request, "--dry-run=server")...)
	if allowed := answer == ""; allowed != (err == nil) || !strings.Contains(said, answer) {
		t.Errorf("%s: %s: %v, kubectl says: %s", account, strings.Join(request, " "), err, said)
	}
}

// file is a file with the manifest.
func (s *site) file(t *testing.T, manifest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// uninstall takes an install away and waits until its pods are gone.
func (s *site) uninstall(t *testing.T, manifests string) {
	t.Helper()
	cmd := s.Lab.KubectlCommand(t.Context(), "delete", "--ignore-not-found", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("uninstall: %v: %s", err, said)
	}
	s.must(t, "wait", "--for=delete", "namespace/"+system, "--timeout=60s")
}

// audits has the audit write reports and statuses, take a report away again, and
// make the webhooks fail closed.
func (s *site) audits(t *testing.T) {
	t.Helper()
	s.apply(t, "{apiVersion: rayfit.dev/v1alpha1, kind: RayPolicy, metadata: {name: first}, spec: {mode: Audit, failClosed: true}}")
	bad := faulty("bad").Set("spec.headGroupSpec.template.spec.nodeSelector", map[string]any{"nowhere": "true"})
	labtest.Eventually(t, patience, "the policy is in force", func() error { return is(s.comesTo(bad), "stored") })
	s.apply(t, bad.YAML())
	reports := func() string { return s.must(t, "get", "reports", "-A", "-o", "name") }
	labtest.Eventually(t, patience, "the report is there", func() error { return is(reports(), "report.openreports.io/rayfit-raycluster-bad") })
	labtest.Eventually(t, patience, "the webhooks fail closed", func() error {
		return is(s.must(t, "get", "rayp", "first", "-o", `jsonpath={.status.conditions[?(@.type=="FailClosed")].status}`), "True")
	})
	s.apply(t, bad.Set("spec.workerGroupSpecs[0].minReplicas", 0).YAML())
	labtest.Eventually(t, patience, "the report is gone", func() error { return is(reports(), "") })
	s.must(t, "delete", "raycluster", "bad")
}

// scales has a new cluster whose GCS wants a token grow in place, get workers and
// lose them, so many times: at the second the same is told again. At last it gets a
// pod that no node takes, of which node autoscalers might say something.
func (s *site) scales(t *testing.T, name string, times int) {
	t.Helper()
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	const resources = "template.spec.containers[0].resources."
	c := scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 2, Unmanned: true, Port: port, Groups: []scaling.Group{
		{Name: "grow", CPU: 1, Min: 1, Max: 2, MaxCPU: 2},
		{Name: "nowhere", CPU: 3, Max: 1, More: map[string]any{
			resources + "requests[example.com/absent]": "1", resources + "limits[example.com/absent]": "1",
		}},
	}}
	object := c.Object().
		Set("spec.authOptions", map[string]any{"mode": "token"}).
		Set("spec.headGroupSpec.template.spec.containers[0].command", sleep)
	if _, err := s.Lab.Request(t.Context(), http.MethodPost, "/apis/ray.io/v1/namespaces/"+scaling.Namespace+"/rayclusters", object.JSON()); err != nil {
		t.Fatal(err)
	}
	ray := s.gcs.Cluster(scaling.Namespace + "/" + c.Name)
	until := func(what string, condition func() error) {
		t.Helper()
		if err := s.Until(t.Context(), what, condition); err != nil {
			t.Fatal(err)
		}
	}
	until("the head and a worker have joined", func() error { return is(ray.Nodes(), 2) })
	for range times {
		ray.Ask(4, map[string]float64{"CPU": 1})
		until("each task has a node", func() error { return is(ray.Waiting(), 0) })
		until("two workers", func() error { return s.HasWorkers(c, "", 2) })
		ray.Finish()
		until("one worker", func() error { return s.HasWorkers(c, "", 1) })
	}
	ray.Ask(1, map[string]float64{"CPU": 3})
	until("a pod without a node", func() error { return is(s.Made(c, "nowhere"), 1) })
}

func is[T comparable](got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("it is %v and not %v", got, wanted)
	}
	return nil
}
