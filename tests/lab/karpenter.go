package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

const (
	// Karpenter is the component that makes Kubernetes nodes.
	Karpenter = "karpenter"
	// karpenterNamespace is where its own installation puts it.
	karpenterNamespace = "kube-system"
)

// karpenterRights are the templates of its chart that say what it may do.
var karpenterRights = []string{"clusterrole.yaml", "clusterrole-kwok.yaml", "role.yaml", "rolebinding.yaml", "serviceaccount.yaml"}

// instanceSizes are the machines of the played cloud, by their CPUs, each with
// twice as many Gi of memory. A machine costs as much as its CPUs.
var instanceSizes = []int{2, 4, 8, 16}

// What Karpenter's KWOK provider takes off each machine before pods may have the
// rest. It is added to the machines, so that their names say what pods get.
const (
	reservedMilliCPU = 100
	reservedMi       = 10
)

// startKarpenter installs Karpenter's definitions and rights as its module has
// them, and runs it with its KWOK provider, whose cloud makes Node objects only.
// The lab's machines (machines.go) are the kubelets behind them.
func (l *Lab) startKarpenter(ctx context.Context) error {
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		if err := l.createCRDs(ctx, filepath.Join(l.state.KarpenterModule, filepath.FromSlash(folder))); err != nil {
			return err
		}
	}
	rights, err := l.karpenterRights(ctx)
	if err != nil {
		return err
	}
	if _, _, err := runKubectl(l.KubectlCommand(ctx, "create", "-f", "-"), rights); err != nil {
		return fmt.Errorf("create what Karpenter may do: %w", err)
	}
	if err := l.writeInstanceTypes(); err != nil {
		return err
	}
	return l.runKarpenter(ctx)
}

// karpenterRights are its account, roles and bindings as its chart has them.
func (l *Lab) karpenterRights(ctx context.Context) (string, error) {
	args := []string{"template", Karpenter, filepath.Join(l.state.KarpenterModule, "kwok", "charts"), "--namespace=" + karpenterNamespace}
	for _, template := range karpenterRights {
		args = append(args, "--show-only=templates/"+template)
	}
	cmd := exec.CommandContext(ctx, l.state.Helm, args...)
	cmd.Env = l.environment(nil)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("render Karpenter's chart: %w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}

func (l *Lab) instanceTypesPath() string { return l.path("config", "instance-types.json") }

func (l *Lab) writeInstanceTypes() error {
	in := func(key, value string) map[string]any {
		return map[string]any{"key": key, "operator": "In", "values": []string{value}}
	}
	var types []map[string]any
	for _, cpus := range instanceSizes {
		types = append(types, map[string]any{
			"name":             fmt.Sprintf("lab-%d", cpus),
			"architecture":     "amd64",
			"operatingSystems": []string{"linux"},
			"resources": map[string]string{
				"cpu":    fmt.Sprintf("%dm", cpus*1000+reservedMilliCPU),
				"memory": fmt.Sprintf("%dMi", cpus*2048+reservedMi),
			},
			"offerings": []any{map[string]any{
				"Price":        cpus,
				"Available":    true,
				"Requirements": []any{in("karpenter.sh/capacity-type", "on-demand"), in("topology.kubernetes.io/zone", "lab")},
			}},
		})
	}
	raw, err := json.MarshalIndent(types, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the machines that Karpenter may have: %w", err)
	}
	if err := os.WriteFile(l.instanceTypesPath(), raw, 0o644); err != nil {
		return fmt.Errorf("write the machines that Karpenter may have: %w", err)
	}
	return nil
}

func (l *Lab) runKarpenter(ctx context.Context) error {
	if err := l.startMachines(); err != nil {
		return err
	}
	credentials, err := l.KubeconfigFor("system:serviceaccount:"+karpenterNamespace+":"+Karpenter,
		"system:serviceaccounts", "system:serviceaccounts:"+karpenterNamespace)
	if err != nil {
		return err
	}
	health := l.state.Ports.Karpenter
	err = l.start(Karpenter, []string{l.state.Karpenter}, []string{
		"KUBECONFIG=" + credentials,
		"SYSTEM_NAMESPACE=" + karpenterNamespace,
		"INSTANCE_TYPES_FILE_PATH=" + l.instanceTypesPath(),
		"DISABLE_LEADER_ELECTION=true",
		"LOG_LEVEL=debug",
		"HEALTH_PROBE_PORT=" + strconv.Itoa(health),
		"METRICS_PORT=" + strconv.Itoa(l.state.Ports.KarpenterMetrics),
	})
	if err != nil {
		return err
	}
	err = l.waitHealthy(ctx, Karpenter, "http://"+loopback(health)+"/readyz")
	if err == nil {
		l.say.step("Karpenter is ready")
	}
	return err
}

// KarpenterMetrics is where Karpenter's metrics are.
func (l *Lab) KarpenterMetrics() string {
	return "http://" + loopback(l.state.Ports.KarpenterMetrics) + "/metrics"
}
