// Package helm_test holds the Helm chart against `rayfit manifests`: for the
// same choices, the real Helm makes the same objects of it.
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

// choices are installs, as flags of `rayfit manifests` and as values of the chart.
var choices = []struct {
	name          string
	flags, values []string
}{
	{"as it comes", nil, nil},
	{"self-managed", []string{"--self-managed"}, []string{"certificates=self-managed"}},
	{"cert-manager", []string{"--cert-manager"}, []string{"certificates=cert-manager"}},
	{"fail-closed", []string{"--fail-closed"}, []string{"failClosed=true"}},
	{"fail-closed with cert-manager", []string{"--fail-closed", "--cert-manager"}, []string{"failClosed=true", "certificates=cert-manager"}},
	{"definitions apart", []string{"--no-crds"}, []string{"crds=false"}},
	{"webhooks only", []string{"--no-controller"}, []string{"controller=false"}},
	{"webhooks only with cert-manager", []string{"--no-controller", "--cert-manager"}, []string{"controller=false", "certificates=cert-manager"}},
	{"may read Secrets", []string{"--ray-auth", "--gcs-ports=6379,6380"}, []string{"rayAuth=true", "gcsPorts={6379,6380}"}},
	{"may delete idle clusters", []string{"--delete-idle-clusters"}, []string{"deleteIdleClusters=true"}},
	{"new pods get an initial size", []string{"--initial-sizes"}, []string{"initialSizes=true"}},
	{"new pods get an initial size in two namespaces", []string{"--initial-sizes", "--only-namespace=a", "--only-namespace=b"}, []string{"initialSizes=true", "onlyNamespaces={a,b}"}},
	{"new pods get an initial size from a single Deployment", []string{"--initial-sizes", "--single-deployment"}, []string{"initialSizes=true", "singleDeployment=true"}},
	{"new pods get an initial size from webhooks only", []string{"--initial-sizes", "--no-controller"}, []string{"initialSizes=true", "controller=false"}},
	{"in two namespaces", []string{"--ray-auth", "--only-namespace=a", "--only-namespace=b"}, []string{"rayAuth=true", "onlyNamespaces={a,b}"}},
	{"a single pod", []string{"--replicas=1", "--controller-replicas=1"}, []string{"replicas=1", "controllerReplicas=1"}},
	{"a single Deployment", []string{"--single-deployment", "--ray-auth"}, []string{"singleDeployment=true", "rayAuth=true"}},
	{"a single Deployment in a namespace", []string{"--single-deployment", "--only-namespace=a"}, []string{"singleDeployment=true", "onlyNamespaces={a}"}},
	{"callers by certificate", []string{"--client-ca-config-map=callers"}, []string{"clientCaConfigMap=callers"}},
	{"callers by certificate with cert-manager", []string{"--client-ca-config-map=callers", "--cert-manager"}, []string{"clientCaConfigMap=callers", "certificates=cert-manager"}},
	{"known neighbours", []string{
		"--api-server-cidr=10.0.0.0/28", "--api-server-cidr=2001:db8::/64",
		"--monitoring-namespace-label=team=observability", "--monitoring-namespace-label=kubernetes.io/metadata.name=monitoring",
	}, []string{
		"apiServerCidrs={10.0.0.0/28,2001:db8::/64}",
		"monitoringNamespaceLabels={team=observability,kubernetes.io/metadata.name=monitoring}",
	}},
	{"another namespace", []string{"--namespace=elsewhere", "--cert-manager"}, []string{"namespace=elsewhere", "certificates=cert-manager"}},
	{"everything", []string{
		"--image=registry.example/rayfit:1", "--replicas=5", "--controller-replicas=3", "--port=9443", "--health-port=9090", "--host-network",
		"--priority-class=system-cluster-critical", "--timeout-seconds=7", "--exclude-namespace=a", "--exclude-namespace=b",
		"--only-namespace=c", "--only-namespace=d", "--api-server-ports=443,6444",
	}, []string{
		"image=registry.example/rayfit:1", "replicas=5", "controllerReplicas=3", "port=9443", "healthPort=9090", "hostNetwork=true",
		"priorityClass=system-cluster-critical", "timeoutSeconds=7", "excludedNamespaces={a,b}",
		"onlyNamespaces={c,d}", "apiServerPorts={443,6444}",
	}},
}

func TestTheChartMakesWhatTheCommandPrints(t *testing.T) {
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, choice := range choices {
		t.Run(choice.name, func(t *testing.T) {
			printed, stderr, err := run(t, binary, append([]string{"manifests"}, choice.flags...)...)
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			want, got := objects(t, printed), objects(t, template(t, choice.values...))
			for identity, object := range want {
				if !reflect.DeepEqual(object, got[identity]) {
					t.Errorf("%s\nthe command prints:\n%s\nthe chart makes:\n%s", identity, object.YAML(), got[identity].YAML())
				}
			}
			for identity := range got {
				if want[identity] == nil {
					t.Errorf("only the chart makes %s", identity)
				}
			}
		})
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

// A flag that is added to the command must become a value, and a choice here.
func TestEveryFlagIsTried(t *testing.T) {
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	help, _, err := run(t, binary, "manifests", "--help")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{"--help": true, "--version": true, "--write-to": true}
	for _, choice := range choices {
		for _, flag := range choice.flags {
			name, _, _ := strings.Cut(flag, "=")
			tried[name] = true
		}
	}
	flags := regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(help, -1)
	if len(flags) < 10 {
		t.Fatalf("%d flags in:\n%s", len(flags), help)
	}
	for _, flag := range flags {
		if !tried[flag[1]] {
			t.Errorf("the chart has no value that is tried for %s", flag[1])
		}
	}
}

func TestTheChartIsWellFormed(t *testing.T) {
	for _, values := range []string{"certificates=self-managed", "certificates=cert-manager"} {
		stdout, stderr, err := runHelm(t, "lint", "--strict", chart, "--set="+values)
		if err != nil || strings.Contains(stdout, "[WARNING]") {
			t.Errorf("helm lint: %v\n%s%s", err, stdout, stderr)
		}
	}
}

func TestRulesAndFurtherArgumentsReachTheProgram(t *testing.T) {
	made := objects(t, template(t, "rules.RF214=warn", "extraArgs={--head-takes-no-work}"))
	args := fmt.Sprint(made["Deployment rayfit-system/rayfit"].Get("spec.template.spec.containers[0].args"))
	for _, want := range []string{"--rule=RF214=warn", "--head-takes-no-work"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s among %s", want, args)
		}
	}
}

func TestChoicesThatCannotWorkAreRefusedInWords(t *testing.T) {
	for value, word := range map[string]string{
		"certificates=none":            "certificates",
		"hostNetwork=true":             "port: 9443",
		"healthPort=10250":             "choose two different ones",
		"apiServerCidrs={10.0.0.1}":    "apiServerCidrs",
		"controllerReplicas=0":         "controllerReplicas",
		"port=443":                     "port",
		"onlyNamespaces={kube-system}": "cannot be selected",
		"timeoutSeconds=31":            "timeoutSeconds",
		"rules.RF214=loud":             "RF214",
		"replica=3":                    "replica",
	} {
		_, stderr, err := runHelm(t, "template", "rayfit", chart, "--namespace=rayfit-system", "--set="+value)
		if err == nil || !strings.Contains(stderr, word) {
			t.Errorf("%s: %v: %s", value, err, stderr)
		}
	}
}
