package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	critest "k8s.io/cri-api/pkg/apis/testing"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubemark"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
)

// nodeOptions are the flags of the node component.
type nodeOptions struct {
	name, kubeconfig, dir, memory, cpuManager, clientCA string
	cores, port                                         int
	containers                                          containerOptions
}

func parseNodeOptions(args []string) (nodeOptions, error) {
	var o nodeOptions
	var workloads string
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", "", "the node's name")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the node's credentials")
	flags.StringVar(&o.dir, "dir", "", "where the node writes")
	flags.IntVar(&o.cores, "cores", 8, "cores to report")
	flags.StringVar(&o.memory, "memory", "16Gi", "memory to report")
	flags.StringVar(&o.cpuManager, "cpu-manager", "", "CPU manager policy to report")
	flags.IntVar(&o.port, "port", 10250, "the kubelet's port on 127.0.0.1")
	flags.StringVar(&o.clientCA, "client-ca", "", "who may call the kubelet")
	flags.StringVar(&o.containers.network, "pod-network", "127.0.1", "first three octets of the pods' addresses")
	flags.StringVar(&o.containers.link, "pod-link", "", "name of the machine's interface into a network of the pods' own; pods share the machine's if empty")
	flags.StringVar(&o.containers.hosts, "hosts", "", "folder of the files to show as /etc/hosts, by namespace")
	flags.StringVar(&o.containers.apiServer, "api-server", "", "host:port of the API server, for pods")
	flags.StringVar(&o.containers.rayfit, "rayfit-binary", "", "what runs for rayfit images")
	flags.StringVar(&o.containers.path, "path", "", "bin folders of virtual environments, first on the PATH of containers")
	flags.StringVar(&o.containers.extraEnv, "container-env", "", "NAME=value for each container")
	flags.StringVar(&o.containers.outside.folder, "outside", "", "folder with a folder per host of the internet that pods find, with what it serves")
	flags.StringVar(&o.containers.outside.certificate, "outside-cert", "", "those hosts' certificate")
	flags.StringVar(&o.containers.outside.key, "outside-key", "", "its key")
	flags.StringVar(&o.containers.outside.authority, "outside-ca", "", "who has signed it")
	flags.StringVar(&workloads, "workloads", "process", "process, or none for containers on the books only")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.name == "" || o.kubeconfig == "" || o.dir == "" {
		return o, errors.New("node needs --name, --kubeconfig and --dir")
	}
	o.containers.processes = workloads == "process"
	return o, nil
}

// runNode runs the kubelet's real code over the lab's container runtime until
// it is told to end; then it ends its containers.
func runNode(args []string) error {
	o, err := parseNodeOptions(args)
	if err != nil {
		return err
	}
	// The kubelet looks its own name up; nobody's DNS server shall hear of it.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the lab asks no DNS server")
	}}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	runtime, err := newRuntime(o.dir, o.containers)
	if err != nil {
		return err
	}
	hollow, err := newKubelet(ctx, o, runtime)
	if err != nil {
		return err
	}
	go hollow.Run(ctx)
	<-ctx.Done()
	runtime.killAll()
	return nil
}

func newKubelet(ctx context.Context, o nodeOptions, runtime *processRuntime) (*kubemark.HollowKubelet, error) {
	memory, err := resource.ParseQuantity(o.memory)
	if err != nil {
		return nil, fmt.Errorf("memory %q is no quantity: %w", o.memory, err)
	}
	rest, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the node's kubeconfig: %w", err)
	}
	rest.QPS, rest.Burst = 100, 200
	client, err := clientset.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("make the node's client: %w", err)
	}
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{NodeName: o.name, KubeletPort: o.port, MaxPods: 250})
	// kubemark has made a directory in /tmp for it, whatever TMPDIR says.
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return nil, fmt.Errorf("remove kubemark's own directory: %w", err)
	}
	config.StaticPodPath = ""
	flags.RootDirectory = filepath.Join(o.dir, "kubelet")
	flags.CertDirectory = filepath.Join(o.dir, "pki")
	kubelet.ContainerLogsDir = filepath.Join(o.dir, "containers-logs")
	config.PodLogsDir = filepath.Join(o.dir, "pod-logs")
	config.VolumePluginDir = filepath.Join(o.dir, "volume-plugins")
	config.Address = "127.0.0.1"
	config.SyncFrequency.Duration = time.Second
	config.Authentication.X509.ClientCAFile = o.clientCA
	config.Authentication.Webhook.Enabled = true
	config.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	// Containers resolve by their hosts file; there is no DNS to ask.
	config.ResolverConfig = ""
	config.ClusterDNS = []string{"127.0.0.1"}
	config.ClusterDomain = "cluster.local"

	hollow := kubemark.NewHollowKubelet(flags, config, client, client,
		&machine{Fake: cadvisortest.Fake{NodeName: o.name}, cores: o.cores, memory: uint64(memory.Value())},
		images{critest.NewFakeImageService()}, runtime, newContainerManager(o.cpuManager))
	return hollow, makeReal(ctx, hollow, client, o)
}

// makeReal takes back what kubemark leaves out: probes, events, files, and a
// kubelet server with TLS and authorization, for kubectl logs and exec.
func makeReal(ctx context.Context, hollow *kubemark.HollowKubelet, client *clientset.Clientset, o nodeOptions) error {
	deps := hollow.KubeletDeps
	deps.OSInterface = guardedOS{root: o.dir}
	deps.HostUtil = hostFiles{hostutil.NewFakeHostUtil(nil)}
	if o.containers.processes {
		deps.ProbeManager = nil // the kubelet then makes its own
	}
	deps.Recorder = nil
	deps.EventClient = client.CoreV1()
	tls, err := kubeletapp.InitializeTLS(ctx, hollow.KubeletFlags, hollow.KubeletConfiguration)
	if err != nil {
		return fmt.Errorf("make the kubelet's certificate: %w", err)
	}
	deps.TLSOptions = tls
	auth, reload, err := kubeletapp.BuildAuth(types.NodeName(o.name), client, *hollow.KubeletConfiguration)
	if err != nil {
		return fmt.Errorf("set up who may call the kubelet: %w", err)
	}
	deps.Auth = auth
	go reload(ctx.Done())
	return nil
}
