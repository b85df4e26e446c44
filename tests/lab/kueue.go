package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Where Kueue's manifests put it.
const (
	kueueNamespace  = "kueue-system"
	kueueDeployment = "kueue-controller-manager"
)

// kueueAddresses are the lines of Kueue's configuration that say where it listens,
// and what they become: without networks of their own, pods share ports, and each
// binds its own address only.
var kueueAddresses = strings.NewReplacer(
	"healthProbeBindAddress: :", "healthProbeBindAddress: POD_IP:",
	"bindAddress: :", "bindAddress: POD_IP:",
	"webhook:\n  port: 9443", "webhook:\n  host: POD_IP\n  port: 9443",
)

// kueueCommand fills the pod's address in and starts Kueue. Its on-demand view of
// queues is an API of its own behind the API server, which nobody here asks for.
const kueueCommand = `sed "s/POD_IP/$POD_IP/" /controller_manager_config.yaml > /tmp/kueue.yaml && ` +
	`exec %s --config=/tmp/kueue.yaml --zap-log-level=2 --feature-gates=VisibilityOnDemand=false`

// startKueue installs Kueue as its module's manifests say: definitions with their
// conversion, webhooks whose certificates Kueue makes itself, and the rights that
// it has in any cluster. Of its Deployment only the command differs, because there
// are no images.
func (l *Lab) startKueue(ctx context.Context) error {
	rendered, _, err := l.Kubectl("kustomize", l.state.KueueManifests)
	if err != nil {
		return fmt.Errorf("render Kueue's manifests: %w", err)
	}
	var others []string
	for _, document := range documents([]byte(rendered)) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return fmt.Errorf("read Kueue's manifests: %w", err)
		}
		switch object["kind"] {
		case "APIService":
			continue // see kueueCommand
		case "CustomResourceDefinition":
			if _, err := l.createCRD(ctx, document); err != nil {
				return fmt.Errorf("create a definition of Kueue's: %w", err)
			}
			continue
		case "ConfigMap":
			document = []byte(kueueAddresses.Replace(string(document)))
		case "Deployment":
			if document, err = l.kueueProcess(object); err != nil {
				return err
			}
		}
		others = append(others, string(document))
	}
	cmd := l.KubectlCommand(ctx, "create", "--validate=false", "-f", "-")
	if _, _, err := runKubectl(cmd, strings.Join(others, "\n---\n")); err != nil {
		return fmt.Errorf("create what Kueue's manifests say: %w", err)
	}
	// It is available once its webhooks answer.
	_, _, err = runKubectl(l.KubectlCommand(ctx, "rollout", "status", "deployment/"+kueueDeployment, "-n", kueueNamespace, "--timeout=120s"), "")
	if err == nil {
		l.say.step("Kueue is ready")
	}
	return err
}

// kueueProcess is Kueue's Deployment with its binary on this machine, which lies
// where only root may read.
func (l *Lab) kueueProcess(deployment map[string]any) ([]byte, error) {
	raw, err := json.Marshal(deployment["spec"])
	if err != nil {
		return nil, fmt.Errorf("read Kueue's Deployment: %w", err)
	}
	var spec struct {
		Replicas int            `json:"replicas"`
		Selector map[string]any `json:"selector"`
		Template struct {
			Metadata map[string]any `json:"metadata"`
			Spec     map[string]any `json:"spec"`
		} `json:"template"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("read Kueue's Deployment: %w", err)
	}
	containers, _ := spec.Template.Spec["containers"].([]any)
	if len(containers) != 1 {
		return nil, fmt.Errorf("Kueue's Deployment has %d containers instead of one: see what is new in %s", len(containers), KueueModule)
	}
	container, _ := containers[0].(map[string]any)
	container["command"] = []string{"/bin/sh", "-c", fmt.Sprintf(kueueCommand, l.state.Kueue)}
	delete(container, "args")
	delete(spec.Template.Spec, "securityContext")
	if probe, ok := container["readinessProbe"].(map[string]any); ok {
		probe["periodSeconds"] = 1 // tests wait for it
	}
	deployment["spec"] = spec
	return yaml.Marshal(deployment)
}

// needsPods are the add-ons that run as pods.
func (o Options) needsPods() bool { return slices.Contains(o.With, WithKueue) }

// kueueManifests is the folder with Kueue's default kustomization.
func kueueManifests(ctx context.Context) (string, error) {
	dir, err := Module(ctx, KueueModule)
	return filepath.Join(dir, "config", "default"), err
}
