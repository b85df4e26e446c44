package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what later invocations need to know about a lab; it lies in lab.json.
type state struct {
	Ports ports `json:"ports"`
	// Octet is X in 127.X.<node>.<pod>, the addresses of this lab's pods.
	Octet int `json:"octet"`
	// Kube is the multi-call binary; Assets a folder of foreign binaries used
	// instead of it.
	Kube         string `json:"kube,omitempty"`
	Assets       string `json:"assets,omitempty"`
	Operator     string `json:"operator,omitempty"`
	CertManager  string `json:"certManager,omitempty"`
	Kueue        string `json:"kueue,omitempty"`
	VPAAdmission string `json:"vpaAdmission,omitempty"`
	VPAUpdater   string `json:"vpaUpdater,omitempty"`
	Karpenter    string `json:"karpenter,omitempty"`
	Helm         string `json:"helm,omitempty"`
	RayBin       string `json:"rayBin,omitempty"`
	Gateway      string `json:"gateway,omitempty"`
	RedisBin     string `json:"redisBin,omitempty"`
	// KubeRayCRDs and CertManagerCRDs are folders with YAML files.
	KubeRayCRDs     string `json:"kubeRayCRDs,omitempty"`
	CertManagerCRDs string `json:"certManagerCRDs,omitempty"`
	// GatewayCRDs is another one, of the Gateway API.
	GatewayCRDs string `json:"gatewayCRDs,omitempty"`
	// KueueManifests is a folder with a kustomization.
	KueueManifests string `json:"kueueManifests,omitempty"`
	// VPAManifests is a folder with YAML files.
	VPAManifests string `json:"vpaManifests,omitempty"`
	// KarpenterModule is the folder of its Go module.
	KarpenterModule string `json:"karpenterModule,omitempty"`
}

type stored struct {
	Options Options `json:"options"`
	State   state   `json:"state"`
}

func (l *Lab) stateFile() string { return l.path("lab.json") }

func (l *Lab) saveState() error {
	raw, err := json.MarshalIndent(stored{l.options, l.state}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the lab's state: %w", err)
	}
	return writeFile(l.stateFile(), raw)
}

func (l *Lab) loadState() error {
	raw, err := os.ReadFile(l.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no lab in %s: start one with `lab up --dir %s`", l.Dir(), l.Dir())
	}
	if err != nil {
		return fmt.Errorf("read the lab's state: %w", err)
	}
	var s stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read the lab's state in %s: %w", l.stateFile(), err)
	}
	l.options, l.state = s.Options, s.State
	return nil
}

// ours are the entries that a lab makes in its directory. Only these are ever
// removed.
var ours = []string{"bin", "config", "etcd", "home", "hosts", "kubeconfig", "lab.json", "logs", "nodes", "pki", "run", "tmp", "users"}

// prepareDir makes the directory ready for a new lab. It refuses a directory
// with foreign files, and one whose lab still runs.
func (l *Lab) prepareDir() error {
	entries, err := os.ReadDir(l.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the lab's directory: %w", err)
	}
	_, err = os.Stat(l.stateFile())
	if len(entries) > 0 && err != nil {
		return fmt.Errorf("%s is not empty and holds no lab: name another directory", l.Dir())
	}
	if pids := markedProcesses(l.Dir()); len(pids) > 0 {
		return fmt.Errorf("a lab already runs in %s (processes %v): stop it with `lab down --dir %s`", l.Dir(), pids, l.Dir())
	}
	for _, name := range ours {
		if err := os.RemoveAll(l.path(name)); err != nil {
			return fmt.Errorf("remove the earlier lab's %s: %w", name, err)
		}
	}
	for _, name := range []string{"bin", "config", "home", "logs", "nodes", "pki", "run", "tmp"} {
		if err := os.MkdirAll(l.path(name), 0o755); err != nil {
			return fmt.Errorf("make the lab's directory: %w", err)
		}
	}
	if err := l.saveState(); err != nil {
		return err
	}
	return l.linkKubectl()
}

// linkKubectl puts kubectl into bin, for a PATH.
func (l *Lab) linkKubectl() error {
	if err := os.Symlink(l.binary("kubectl")[0], l.path("bin", "kubectl")); err != nil {
		return fmt.Errorf("link kubectl: %w", err)
	}
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
