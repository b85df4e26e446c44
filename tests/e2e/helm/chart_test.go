// Package helm_test has the real Helm render and install the chart, whose
// templates are made from what `rayfit manifests` prints.
package helm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

const chart = "../../../manifests/helm"

var helm = sync.OnceValues(func() (string, error) {
	return lab.Build(context.Background(), "helm", os.Stderr)
})

// run runs a program and returns what it says.
func run(t *testing.T, path string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

func runHelm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	return run(t, path, args...)
}

// objects reads a stream of YAML by identity.
func objects(t *testing.T, text string) map[string]rig.Object {
	t.Helper()
	found := map[string]rig.Object{}
	for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		var object rig.Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		identity := fmt.Sprintf("%s %v/%s", object["kind"], object.Get("metadata.namespace"), object.Name())
		if _, twice := found[identity]; twice {
			t.Errorf("%s is there twice", identity)
		}
		found[identity] = object
	}
	return found
}

// Installs that take each branch of the templates.
var installs = [][]string{
	{},
	{"certificates=cert-manager", "failClosed=true"},
	{"singleDeployment=true", "initialSizes=true"},
	{"controller.enabled=false", "initialSizes=true", "crds.enabled=false"},
	{"namespace=rayfit-a", "webhook.enabled=false", "onlyNamespaces={a,b}", "rayAuth=true", "deleteIdleClusters=true"},
	{"webhook.replicaCount=1", "controller.replicaCount=1", "rayAuth=true", "deleteIdleClusters=true"},
	{
		"namespace=elsewhere", "webhook.port=9443", "healthPort=9090", "webhook.hostNetwork=true", "webhook.timeoutSeconds=7",
		"priorityClassName=system-cluster-critical", "excludedNamespaces={a,b}", "onlyNamespaces={c,d}", "initialSizes=true",
		"apiServerPorts={443,6444}", "apiServerCidrs={10.0.0.0/28,2001:db8::/64}", "gcsPorts={6379,6380}",
		"monitoringNamespaceLabels={team=observability,kubernetes.io/metadata.name=monitoring}", "webhook.clientCaConfigMap=callers",
	},
}

func TestEveryBranchOfTheTemplatesMakesObjects(t *testing.T) {
	for _, values := range installs {
		t.Run(strings.Join(values, " "), func(t *testing.T) {
			text := template(t, values...)
			for _, left := range []string{"<<", "{{", "4000", "<no value>", "%!"} {
				if strings.Contains(text, left) {
					t.Errorf("%q is left in:\n%s", left, text)
				}
			}
			if made := objects(t, text); len(made) < 8 {
				t.Errorf("only %d objects", len(made))
			}
		})
	}
}

func TestAFurtherInstallationScalesItsNamespacesOnly(t *testing.T) {
	made := objects(t, template(t, "namespace=rayfit-a", "webhook.enabled=false", "onlyNamespaces={a,b}", "crds.enabled=false"))
	for identity := range made {
		if strings.Contains(identity, "Webhook") || identity == "Deployment rayfit-a/rayfit" {
			t.Errorf("it has %s", identity)
		}
	}
	for _, identity := range []string{
		"Deployment rayfit-a/rayfit-controller", "Role a/rayfit-scaling", "RoleBinding b/rayfit-scaling",
		"ClusterRole <nil>/rayfit-policies-rayfit-a", "ValidatingAdmissionPolicy <nil>/rayfit-pod-writes-rayfit-a",
	} {
		if made[identity] == nil {
			t.Errorf("it has no %s", identity)
		}
	}
}

// The names are those of cert-manager's chart, once for each Deployment.
func TestValuesWithoutAFlagReachThePods(t *testing.T) {
	made := objects(t, template(t,
		"image.registry=registry.example", "image.digest=sha256:"+strings.Repeat("0123456789abcdef", 4), "image.pullPolicy=Always",
		"imagePullSecrets[0].name=pull", "commonLabels.team=ray", "controller.nodeSelector.disk=ssd",
		"controller.tolerations[0].operator=Exists", "controller.resources.limits.memory=2Gi",
		"controller.podLabels.a=b", "controller.podAnnotations.c=d", "controller.serviceAccount.annotations.role=scaler",
		"controller.extraArgs={--api-rate=300}", "controller.extraEnv[0].name=HTTPS_PROXY", "controller.extraEnv[0].value=http://proxy",
		"controller.podSecurityContext.fsGroup=1", "controller.containerSecurityContext.runAsUser=2",
		"controller.topologySpreadConstraints[0].topologyKey=rack", "webhook.tolerations[0].operator=Exists", "webhook.rules.RF214=warn", "webhook.extraArgs={--head-takes-no-work}",
	))
	controller := made["Deployment rayfit-system/rayfit-controller"]
	for path, want := range map[string]string{
		"metadata.labels.team":                                       "ray",
		"spec.template.metadata.labels.team":                         "ray",
		"spec.template.metadata.labels.a":                            "b",
		"spec.template.metadata.annotations.c":                       "d",
		"spec.template.spec.imagePullSecrets[0].name":                "pull",
		"spec.template.spec.nodeSelector.disk":                       "ssd",
		"spec.template.spec.tolerations[0].operator":                 "Exists",
		"spec.template.spec.securityContext":                         "map[fsGroup:1 runAsNonRoot:true seccompProfile:map[type:RuntimeDefault]]",
		"spec.template.spec.topologySpreadConstraints":               "[map[topologyKey:rack]]",
		"spec.template.spec.containers[0].image":                     "registry.example/rayfit@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"spec.template.spec.containers[0].imagePullPolicy":           "Always",
		"spec.template.spec.containers[0].resources.limits.memory":   "2Gi",
		"spec.template.spec.containers[0].securityContext.runAsUser": "2",
		"spec.template.spec.containers[0].env[2].name":               "HTTPS_PROXY",
		"spec.template.spec.containers[0].args[4]":                   "--api-rate=300",
	} {
		if got := fmt.Sprint(controller.Get(path)); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if role := made["ServiceAccount rayfit-system/rayfit-controller"].Get("metadata.annotations.role"); role != "scaler" {
		t.Errorf("the account has %v", role)
	}
	if tolerated := made["Pod rayfit-system/rayfit-test"].Get("spec.tolerations[0].operator"); tolerated != "Exists" {
		t.Errorf("the pod of `helm test` tolerates %v", tolerated)
	}
	args := fmt.Sprint(made["Deployment rayfit-system/rayfit"].Get("spec.template.spec.containers[0].args"))
	for _, want := range []string{"--rule=RF214=warn", "--head-takes-no-work"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s among %s", want, args)
		}
	}
	definition := made["CustomResourceDefinition <nil>/raypolicies.rayfit.dev"]
	if kept := fmt.Sprint(definition.Get("metadata.annotations")); kept != "map[helm.sh/resource-policy:keep]" {
		t.Errorf("the definition has annotations %s", kept)
	}
}

// What Prometheus and Grafana take is what kustomize gives them.
func TestMonitoringIsThatOfTheFolder(t *testing.T) {
	const folder = "../../../manifests/monitoring/"
	kinds := []string{"ServiceMonitor rayfit-system/rayfit", "PrometheusRule rayfit-system/rayfit", "ConfigMap rayfit-system/rayfit-dashboard"}
	without := objects(t, template(t))
	for _, identity := range kinds {
		if without[identity] != nil {
			t.Errorf("%s is there without being asked for", identity)
		}
	}
	made := objects(t, template(t, "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=1m",
		"metrics.serviceMonitor.additionalLabels.release=prometheus", "metrics.prometheusRule.enabled=true",
		"metrics.dashboard.enabled=true", "commonLabels.team=ray"))
	read := func(file string) string {
		text, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for at, file := range []string{"service-monitor.yaml", "prometheus-rule.yaml"} {
		var want rig.Object
		text := strings.Replace(read(file), "interval: 30s", "interval: 1m", 1)
		if err := yaml.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if got := made[kinds[at]]; !reflect.DeepEqual(got["spec"], want["spec"]) {
			t.Errorf("%s is %v, want %v", kinds[at], got["spec"], want["spec"])
		}
	}
	for path, want := range map[string]string{"release": "prometheus", "team": "ray"} {
		if got := made[kinds[0]].Get("metadata.labels." + path); got != want {
			t.Errorf("the label %s is %v", path, got)
		}
	}
	data, _ := made[kinds[2]]["data"].(map[string]any)
	if data["dashboard.json"] != read("dashboard.json") {
		t.Errorf("the dashboard is %v", data["dashboard.json"])
	}
}

// template renders the chart, with its namespace among the objects.
func template(t *testing.T, values ...string) string {
	t.Helper()
	namespace := "rayfit-system"
	args := []string{"template", "rayfit", chart, "--kube-version=1.37.2", "--set=createNamespace=true"}
	for _, value := range values {
		if name, ok := strings.CutPrefix(value, "namespace="); ok {
			namespace = name
			continue
		}
		args = append(args, "--set="+value)
	}
	stdout, stderr, err := runHelm(t, append(args, "--namespace="+namespace)...)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return stdout
}

func TestTheChartIsWellFormed(t *testing.T) {
	for _, values := range []string{"certificates=self-managed", "certificates=cert-manager"} {
		stdout, stderr, err := runHelm(t, "lint", "--strict", chart, "--set="+values)
		if err != nil || strings.Contains(stdout, "[WARNING]") {
			t.Errorf("helm lint: %v\n%s%s", err, stdout, stderr)
		}
	}
}

func TestChoicesThatCannotWorkAreRefusedInWords(t *testing.T) {
	for value, word := range map[string]string{
		"certificates=none":            "certificates",
		"webhook.hostNetwork=true":     "port: 9443",
		"healthPort=10250":             "choose two different ones",
		"apiServerCidrs={10.0.0.1}":    "apiServerCidrs",
		"controller.replicaCount=0":    "replicaCount",
		"webhook.port=443":             "port",
		"onlyNamespaces={kube-system}": "cannot be selected",
		"webhook.timeoutSeconds=31":    "timeoutSeconds",
		"webhook.rules.RF214=loud":     "RF214",
		"replica=3":                    "replica",
		"webhook.enabled=false":        "onlyNamespaces",
		"image.digest=1234":            "digest",
	} {
		_, stderr, err := runHelm(t, "template", "rayfit", chart, "--namespace=rayfit-system", "--set="+value)
		if err == nil || !strings.Contains(stderr, word) {
			t.Errorf("%s: %v: %s", value, err, stderr)
		}
	}
}
