package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

func TestAnInstallJudgesDefaultsAndKeepsToItsRights(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--self-managed"))
	readyPods(t, l, 2)

	_, stderr, err := l.Apply(example(t, "bad.yaml"))
	if err == nil {
		t.Fatal("a bad RayCluster was stored")
	}
	for _, rule := range []string{"RF104", "RF105", "RF108", "RF201", "RF204", `Write "32Gi"`} {
		if !strings.Contains(stderr, rule) {
			t.Errorf("the denial does not name %s: %s", rule, stderr)
		}
	}

	if _, stderr, err := l.Apply(example(t, "good.yaml")); err != nil || stderr != "" {
		t.Errorf("a good RayCluster: %v, %s", err, stderr)
	}
	defer labtest.Kubectl(t, l, "delete", "raycluster", "notebook", "-n", team)
	mode := labtest.Kubectl(t, l, "get", "raycluster", "notebook", "-n", team, "-o", "jsonpath={.spec.autoscalerOptions.upscalingMode}")
	if mode != "Default" {
		t.Errorf("upscalingMode = %q, want the default written out", mode)
	}

	noneForbidden(t, l)
	restricted(t, l)
	fewRights(t, l)
}

// restricted checks that the namespace takes no pod with more rights than ours.
func restricted(t *testing.T, l *lab.Lab) {
	t.Helper()
	_, stderr, err := l.Kubectl("run", "root", "-n", system, "--image=example/root", "--privileged")
	if err == nil || !strings.Contains(stderr, `violates PodSecurity "restricted`) {
		t.Errorf("a privileged pod in %s: %v, %s", system, err, stderr)
	}
}

// fewRights asks the API server what our accounts may do beyond their own objects.
func fewRights(t *testing.T, l *lab.Lab) {
	t.Helper()
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"}
	can := func(account string, args ...string) string {
		stdout, _, _ := l.KubectlAs("system:serviceaccount:"+system+":"+account, groups, append([]string{"auth", "can-i"}, args...)...)
		return strings.TrimSpace(stdout)
	}
	for _, right := range [][2][]string{
		{{"rayfit"}, {"update", "secret/rayfit-self-managed-certs", "-n", system}},
		{{"rayfit"}, {"patch", "validatingwebhookconfiguration/rayfit-validating"}},
		{{"rayfit-controller"}, {"patch", "rayclusters.ray.io", "-n", team}},
		{{"rayfit-controller"}, {"patch", "pods", "--subresource=resize", "-n", team}},
	} {
		for _, account := range []string{"rayfit", "rayfit-controller"} {
			want := "no"
			if account == right[0][0] {
				want = "yes"
			}
			if answer := can(account, right[1]...); answer != want {
				t.Errorf("may %s %v? %q, want %s", account, right[1], answer, want)
			}
		}
	}
	for _, right := range [][]string{
		{"get", "secrets", "-n", system},
		{"create", "secrets", "-n", system},
		{"get", "secrets", "-n", team},
		{"delete", "pods", "-n", team},
		{"create", "pods", "-n", team},
		{"create", "rayclusters.ray.io", "-n", team},
		{"update", "rayclusters.ray.io", "-n", team},
		{"delete", "rayclusters.ray.io", "-n", team},
		{"patch", "validatingwebhookconfigurations"},
		{"delete", "validatingwebhookconfiguration/rayfit-validating"},
	} {
		for _, account := range []string{"rayfit", "rayfit-controller"} {
			if answer := can(account, right...); answer != "no" {
				t.Errorf("may %s %v? %q, want no", account, right, answer)
			}
		}
	}
}

func TestBothWaysToInstallAreTheSame(t *testing.T) {
	l := cluster(t)
	manifests := rayfit(t, "manifests", "--self-managed")
	removeAfter(t, l, manifests)
	labtest.Kubectl(t, l, "apply", "-k", repository+"/manifests/overlays/self-managed")
	rolledOut(t, l)
	trusted(t, l)

	if difference, err := kubectlWith(l, manifests, "diff", "-f", "-"); err != nil {
		t.Errorf("the folder and the command differ: %v: %s", err, difference)
	}
	if _, _, err := l.Apply(manifests); err != nil {
		t.Fatal(err)
	}
	trusted(t, l) // applying again has not taken the caBundle away
}

func TestAnUpgradeLosesNoCall(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--self-managed", "--fail-closed", "--replicas=2"))
	before := readyPods(t, l, 2)

	object := goodCluster(t)
	load := startLoad(t, 4, 60, func(ctx context.Context) error { return create(ctx, l, object) })
	load.underWay(t, 20)
	labtest.Kubectl(t, l, "rollout", "restart", "deployment/rayfit", "-n", system)
	rolledOut(t, l)
	for _, p := range readyPods(t, l, 2) {
		for _, old := range before {
			if p.Metadata.Name == old.Metadata.Name {
				t.Errorf("%s was not replaced", p.Metadata.Name)
			}
		}
	}
	load.end(t, "upgrade", 100)
	noneForbidden(t, l)
}

func TestAnUninstallLeavesNothing(t *testing.T) {
	l := cluster(t)
	manifests := rayfit(t, "manifests", "--self-managed", "--fail-closed")
	install(t, l, manifests)
	uninstall(t, l, manifests)

	kinds := "namespaces,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,deployments,services,secrets,serviceaccounts,roles,rolebindings,pods,networkpolicies,poddisruptionbudgets,validatingadmissionpolicies,validatingadmissionpolicybindings"
	labtest.Eventually(t, time.Minute, "nothing is left", func() error {
		left, _, err := l.Kubectl("get", kinds, "-A", "-l", "app.kubernetes.io/name=rayfit", "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("left: %s", left)
		}
		return err
	})
	if _, stderr, err := l.Apply(example(t, "bad.yaml")); err != nil {
		t.Errorf("without Rayfit a RayCluster is nobody's business: %s", stderr)
	}
	labtest.Kubectl(t, l, "delete", "raycluster", "notebook", "-n", team)
}
