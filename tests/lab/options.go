package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Workloads says what a container on a lab node is.
type Workloads string

const (
	// Processes runs each container's command as a group of host processes.
	Processes Workloads = "process"
	// NoProcesses only keeps the books, so that hundreds of nodes and pods fit.
	NoProcesses Workloads = "none"
)

// AuditLevel is how much the API server writes into its audit log.
type AuditLevel string

const (
	AuditOff      AuditLevel = ""
	AuditMetadata AuditLevel = "Metadata"
	AuditRequest  AuditLevel = "Request"
)

// Add-ons for Options.With.
const (
	WithOperator    = "operator"
	WithCertManager = "certmanager"
	WithKueue       = "kueue"
	WithVPA         = "vpa"
	WithKarpenter   = "karpenter"
	WithGateway     = "gateway"
)

var addOns = []string{WithOperator, WithCertManager, WithKueue, WithVPA, WithKarpenter, WithGateway}

// Options describe the lab to start. The zero value of each field is usable,
// except for Dir.
type Options struct {
	// Dir holds everything the lab writes. It must be empty, absent, or the
	// directory of an earlier lab that has been stopped.
	Dir string `json:"dir"`

	// AdmissionOnly leaves out scheduler and nodes: etcd, API server,
	// controller manager (namespace deletion and garbage collection need it)
	// and the KubeRay CRDs.
	AdmissionOnly bool `json:"admissionOnly,omitempty"`

	// Nodes, Cores and Memory (a Kubernetes quantity) describe the nodes.
	Nodes  int    `json:"nodes,omitempty"`
	Cores  int    `json:"cores,omitempty"`
	Memory string `json:"memory,omitempty"`

	// CPUManager is the kubelets' CPU manager policy, as they call it; "none" if
	// empty. With "static" a kubelet calls each change of a Guaranteed pod's CPU
	// infeasible. The lab gives no pod CPUs of its own.
	CPUManager string `json:"cpuManager,omitempty"`

	// With lists add-ons: WithOperator, WithCertManager, WithKueue, WithVPA,
	// WithKarpenter, and WithGateway, which needs PodNetwork.
	With []string `json:"with,omitempty"`

	// Workloads is what containers are; Processes if empty.
	Workloads Workloads `json:"workloads,omitempty"`

	// PodNetwork gives each pod a network namespace of its own, with an address from
	// 198.18.X.0/24 that the machine reaches too: several pods may bind the same port
	// on all addresses, and EndpointSlices are filled. It is for one node with processes.
	PodNetwork bool `json:"podNetwork,omitempty"`

	// Outside is a folder with a folder for each host of the internet that pods shall
	// find, by its name, with the files that it serves: nothing else of the internet is
	// there. Containers trust the lab's certificate for them where they use Python's
	// package requests. It needs PodNetwork.
	Outside string `json:"outside,omitempty"`

	// Ray puts a virtual environment with the real Ray on the PATH of Ray
	// containers. It is made on first use, which takes minutes.
	Ray bool `json:"ray,omitempty"`

	// Serve puts what Ray Serve needs beside Ray, and the load generator Locust.
	Serve bool `json:"serve,omitempty"`

	// Libraries puts what Ray Serve, Data, Tune and Train need beside Ray. PyTorch
	// is not among it: it would come with gigabytes for GPUs.
	Libraries bool `json:"libraries,omitempty"`

	// Redis puts redis-server and redis-cli on the PATH of containers.
	Redis bool `json:"redis,omitempty"`

	// RayfitBinary is what runs for images whose name contains "rayfit".
	RayfitBinary string `json:"rayfitBinary,omitempty"`

	// Audit switches the API server's audit log on.
	Audit AuditLevel `json:"audit,omitempty"`

	// APIServerArgs are added to the API server's command line.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`

	// OperatorEnv is added to the KubeRay operator's environment.
	OperatorEnv []string `json:"operatorEnv,omitempty"`

	// OperatorArgs are added to the KubeRay operator's command line.
	OperatorArgs []string `json:"operatorArgs,omitempty"`

	// OperatorWebhooks makes the KubeRay operator serve its own webhook too, at
	// Lab.OperatorWebhook, as a peer for comparisons. It is not registered.
	OperatorWebhooks bool `json:"operatorWebhooks,omitempty"`

	// Detach lets the lab outlive the process that started it, as the command
	// needs it. Without it the kernel ends every component with its parent, so
	// that a killed test leaves nothing behind.
	Detach bool `json:"detach,omitempty"`

	// Progress receives one line for each step; nil discards them.
	Progress io.Writer `json:"-"`
}

// maxDir leaves room for <dir>/nodes/node-NN/kubelet/pods-api/<10 digits> in
// the 107 bytes of a socket's path.
const maxDir = 62

// validated returns the options with defaults filled in, or what is wrong with them.
func (o Options) validated() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("lab: Options.Dir is empty: name a directory for the lab's files")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("lab: resolve directory %q: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Nodes > 0 && len(dir) > maxDir {
		return o, fmt.Errorf("lab: the path %s is too long for the kubelet's sockets in it: use a directory with at most %d characters", dir, maxDir)
	}
	if o.AdmissionOnly && (o.Nodes > 0 || len(o.With) > 0) {
		return o, fmt.Errorf("lab: AdmissionOnly excludes nodes and add-ons: drop one of the two")
	}
	for _, w := range o.With {
		if !slices.Contains(addOns, w) {
			return o, fmt.Errorf("lab: unknown add-on %q: use %s", w, strings.Join(addOns, ", "))
		}
	}
	switch o.Workloads {
	case "":
		o.Workloads = Processes
	case Processes, NoProcesses:
	default:
		return o, fmt.Errorf("lab: unknown workloads %q: use %s or %s", o.Workloads, Processes, NoProcesses)
	}
	if o.needsPods() && (o.Nodes < 1 || o.Workloads != Processes) {
		return o, fmt.Errorf("lab: %s runs as a pod: ask for a node whose containers are processes, or leave it out", WithKueue)
	}
	if o.PodNetwork && (o.Nodes != 1 || o.Workloads != Processes) {
		return o, fmt.Errorf("lab: PodNetwork is for one node whose containers are processes: ask for that, or leave it out")
	}
	if o.has(WithGateway) && !o.PodNetwork {
		return o, fmt.Errorf("lab: %s needs PodNetwork, for the port of a Gateway: add it, or leave the add-on out", WithGateway)
	}
	if o.Outside != "" && !o.PodNetwork {
		return o, fmt.Errorf("lab: Outside needs PodNetwork: add it, or leave Outside out")
	}
	if (o.Serve || o.Libraries) && !o.Ray || o.Serve && o.Libraries {
		return o, fmt.Errorf("lab: Serve and Libraries are each a kind of Ray: ask for Ray, and for one of the two")
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return o, fmt.Errorf("lab: %d nodes: use 0 to %d", o.Nodes, maxNodes)
	}
	if o.Nodes > 0 && o.Workloads == Processes && os.Geteuid() != 0 {
		return o, fmt.Errorf("lab: containers as processes need root for their mount and PID namespaces: run as root, or use workloads %q", NoProcesses)
	}
	if o.RayfitBinary != "" {
		if o.RayfitBinary, err = filepath.Abs(o.RayfitBinary); err != nil {
			return o, fmt.Errorf("lab: resolve %q: %w", o.RayfitBinary, err)
		}
		if _, err := os.Stat(o.RayfitBinary); err != nil {
			return o, fmt.Errorf("lab: the binary for rayfit images: build it first: %w", err)
		}
	}
	if o.Cores == 0 {
		o.Cores = 8
	}
	if o.Memory == "" {
		o.Memory = "16Gi"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o, nil
}

func (o Options) has(addOn string) bool { return slices.Contains(o.With, addOn) }
