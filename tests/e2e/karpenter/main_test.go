// Package karpenter_test has the real Karpenter as the node autoscaler under Ray
// clusters that Rayfit scales: it makes Kubernetes nodes for their workers, and
// takes away again what it finds too large. Kubernetes, the kubelets of these
// nodes and KubeRay's operator are the real ones too. Played are the cloud, which
// is Karpenter's own KWOK provider, the containers, and Ray.
package karpenter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// shared is the lab of all tests, with a Rayfit controller and a played GCS.
var shared struct {
	*scaling.World
	gcs        *playgcs.Server
	controller *scaling.Controller
}

func TestMain(m *testing.M) {
	ctx := context.Background()
	options := lab.Options{
		Nodes: 1, Cores: 64, Memory: "64Gi", Workloads: lab.NoProcesses,
		With: []string{lab.WithOperator, lab.WithKarpenter}, Audit: lab.AuditMetadata,
	}
	os.Exit(labtest.Run(m, options, func(l *lab.Lab) (err error) {
		if shared.World, err = scaling.Observe(ctx, l); err != nil {
			return err
		}
		shared.gcs = playgcs.New(shared.Notify)
		go shared.gcs.Follow(ctx, l)
		shared.controller, err = scaling.StartController(ctx, l, "")
		return err
	}))
}

// begin makes a cluster that ends with its test, and waits until its head has
// joined the played Ray.
func begin(t *testing.T, c *scaling.Cluster) *playgcs.Cluster {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was seen to happen:\n%s", shared.History())
			for _, component := range []string{lab.Karpenter, shared.controller.Name} {
				log, _ := shared.Lab.Logs(component)
				t.Logf("the end of the log of %s:\n%s", component, scalingtest.Tail(log, 60))
			}
		}
	})
	scalingtest.Create(t, shared.World, c)
	ray := shared.gcs.Cluster(c.Namespace + "/" + c.Name)
	until(t, "the head has joined", func() error {
		if ray.Nodes() == 0 {
			return fmt.Errorf("no node of %s", c.Name)
		}
		return nil
	})
	return ray
}

// nodePool makes a NodePool with a class of its own: its machines are of the given
// types, and their Nodes appear so long after they were asked for. Its Nodes are
// for workers only. It ends with its test, and its Nodes with it.
func nodePool(t *testing.T, name string, delay time.Duration, disruption string, types ...string) {
	t.Helper()
	apply(t, fmt.Sprintf(`apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: %[1]s}
spec: {nodeRegistrationDelay: %[2]ds}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: %[1]s}
      taints: [{key: example.com/workers, effect: NoSchedule}]
      expireAfter: Never
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%[4]s]}
      # Where a pool would take spot machines too, and there are none, the KWOK
      # provider panics instead of saying so.
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: %[3]s
`, name, int(delay.Seconds()), disruption, strings.Join(types, ", ")))
	t.Cleanup(func() {
		kubectl(t, "delete", "nodepool", name, "--wait=false")
	})
}

// never is the disruption of a NodePool whose machines stay.
const never = "{consolidateAfter: Never}"

// in puts the pods of a group onto the machines of a NodePool.
func in(pool string, g scaling.Group) scaling.Group {
	more := map[string]any{
		"template.spec.nodeSelector[karpenter.sh/nodepool]": pool,
		"template.spec.tolerations":                         []any{map[string]any{"key": "example.com/workers", "operator": "Exists"}},
	}
	for path, value := range g.More {
		more[path] = value
	}
	g.More = more
	return g
}

// nodeClaims are the machines of a NodePool: their types, by their names.
func nodeClaims(t *testing.T, pool string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, claim := range claimsOf(t, pool) {
		kind, _ := claim.Get("metadata.labels[node.kubernetes.io/instance-type]").(string)
		found[claim.Name()] = kind
	}
	return found
}

// allClaims is nil once all machines of a NodePool have a condition.
func allClaims(t *testing.T, pool, condition string) error {
	t.Helper()
	for _, claim := range claimsOf(t, pool) {
		conditions, _ := claim.Get("status.conditions").([]any)
		holds := func(one any) bool {
			fields, _ := one.(map[string]any)
			return fields["type"] == condition && fields["status"] == "True"
		}
		if !slices.ContainsFunc(conditions, holds) {
			return fmt.Errorf("%s is not %s", claim.Name(), condition)
		}
	}
	return nil
}

// looks is how often Karpenter has looked for a machine to save.
func looks(t *testing.T) float64 {
	t.Helper()
	answer, err := http.Get(shared.Lab.KarpenterMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rig.ParseMetrics(string(text)).Sum("karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count", `consolidation_type="single"`)
}

func claimsOf(t *testing.T, pool string) []rig.Object {
	t.Helper()
	raw, err := shared.Lab.Request(t.Context(), http.MethodGet, "/apis/karpenter.sh/v1/nodeclaims?labelSelector=karpenter.sh%2Fnodepool%3D"+pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []rig.Object }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func policy(t *testing.T, name, spec string) {
	t.Helper()
	apply(t, fmt.Sprintf("apiVersion: rayfit.dev/v1alpha1\nkind: RayPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec))
	t.Cleanup(func() { kubectl(t, "delete", "rayp", name, "--ignore-not-found") })
}

// change merges a patch into a RayPolicy's spec.
func change(t *testing.T, policy, spec string) {
	t.Helper()
	kubectl(t, "patch", "rayp", policy, "--type=merge", "--patch", `{"spec":`+spec+`}`)
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := shared.Lab.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _, err := shared.Lab.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

func until(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := shared.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}

// says is nil once a command of Rayfit says all of these texts about a cluster.
func says(t *testing.T, c scaling.Cluster, command string, texts ...string) error {
	t.Helper()
	head, err := shared.Head(c)
	if err != nil {
		return err
	}
	address, _ := head.Get("status.podIP").(string)
	told, err := rig.Output(t.Context(), command, c.Namespace+"/"+c.Name, "--kubeconfig="+shared.Lab.Kubeconfig(),
		"--gcs-address="+net.JoinHostPort(address, strconv.Itoa(c.Port)))
	if err != nil {
		return err
	}
	for _, text := range texts {
		if !strings.Contains(told, text) {
			return fmt.Errorf("rayfit %s says nothing of %q: %s", command, text, told)
		}
	}
	return nil
}

// placed is nil once every task of a played Ray has a node.
func placed(ray *playgcs.Cluster) error {
	if n := ray.Waiting(); n > 0 {
		return fmt.Errorf("%d tasks wait", n)
	}
	return nil
}

func made(c scaling.Cluster, group string, count int) error {
	if n := shared.Made(c, group); n != count {
		return fmt.Errorf("%d pods of group %q were made instead of %d", n, group, count)
	}
	return nil
}

func since(begin, moment time.Time) time.Duration {
	return moment.Sub(begin).Round(100 * time.Millisecond)
}
