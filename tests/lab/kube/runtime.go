package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	critest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-streaming/pkg/streaming"
)

// containerOptions say how containers of this node are run.
type containerOptions struct {
	processes bool
	network   string // "127.0.1": pods get 127.0.1.1 and so on
	link      string // the machine's interface into a network of the pods' own; none if empty
	hosts     string
	apiServer string
	rayfit    string
	path      string // bin folders of virtual environments, separated by colons
	extraEnv  string
	outside   outsideOptions
}

// processRuntime is a container runtime whose containers are host processes in
// namespaces of their own. The books (which sandboxes and containers there are)
// are those of the CRI's fake; this adds addresses, processes and resources.
type processRuntime struct {
	*critest.FakeRuntimeService
	options   containerOptions
	dir       string
	records   string // of containers that ended by themselves
	addresses *addresses
	network   *podNetwork // nil if pods share the machine's
	streaming streaming.Server

	mu         sync.Mutex
	containers map[string]*container
}

// container is what the books do not keep.
type container struct {
	config    *cri.ContainerConfig
	sandbox   *cri.PodSandboxConfig
	sandboxID string
	address   string
	dir       string // private files, removed with the container
	logPath   string
	resources *cri.LinuxContainerResources
	process   *containerProcess // nil until started, and without a command
}

func newRuntime(dir string, options containerOptions) (*processRuntime, error) {
	r := &processRuntime{
		FakeRuntimeService: critest.NewFakeRuntimeService(),
		options:            options,
		dir:                filepath.Join(dir, "containers"),
		records:            filepath.Join(dir, "ended"),
		addresses:          newAddresses(options.network),
		containers:         map[string]*container{},
	}
	r.FakeStatus = &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true},
		{Type: cri.NetworkReady, Status: true},
	}}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the containers' directory: %w", err)
	}
	if options.processes && options.link != "" {
		var err error
		if r.network, err = newPodNetwork(options.network, options.link, options.apiServer, options.outside); err != nil {
			return nil, err
		}
	}
	return r, r.serveStreams()
}

func (r *processRuntime) RunPodSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error) {
	id, err := r.FakeRuntimeService.RunPodSandbox(ctx, config, handler)
	if err != nil {
		return "", err
	}
	address, err := r.addresses.take(id)
	if err == nil && r.network != nil {
		err = r.network.add(id, address)
	}
	if err != nil {
		return "", errors.Join(err, r.RemovePodSandbox(ctx, id))
	}
	r.Lock()
	r.Sandboxes[id].Network.Ip = address
	r.Unlock()
	return id, nil
}

func (r *processRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	if r.network != nil {
		r.network.remove(id)
	}
	r.addresses.give(id)
	return r.FakeRuntimeService.RemovePodSandbox(ctx, id)
}

func (r *processRuntime) CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (string, error) {
	id, err := r.FakeRuntimeService.CreateContainer(ctx, sandboxID, config, sandbox)
	if err != nil {
		return "", err
	}
	c := &container{
		config: config, sandbox: sandbox, sandboxID: sandboxID,
		address:   r.addresses.of(sandboxID),
		dir:       filepath.Join(r.dir, id),
		logPath:   filepath.Join(sandbox.LogDirectory, config.LogPath),
		resources: config.GetLinux().GetResources(),
	}
	r.mu.Lock()
	r.containers[id] = c
	r.mu.Unlock()
	r.Lock()
	r.Containers[id].LogPath = c.logPath
	r.Containers[id].Mounts = config.Mounts
	r.Unlock()
	return id, nil
}

func (r *processRuntime) StartContainer(ctx context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	var process *containerProcess
	if r.options.processes {
		if process, err = r.launch(ctx, c); err != nil {
			r.exited(id, exitCannotStart, "StartError")
			return err
		}
	}
	r.mu.Lock()
	c.process = process
	r.mu.Unlock()
	// Only now that its root is built: what is reported running can be entered.
	err = r.FakeRuntimeService.StartContainer(ctx, id)
	if process == nil {
		return err
	}
	go func() {
		code, reason := process.wait()
		if code != 0 && !process.asked.Load() {
			// Before the books say that it has ended, and the kubelet removes it.
			if err := r.keepRecord(c, code); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		r.exited(id, code, reason)
	}()
	return err
}

// exited writes a container's end into the books.
func (r *processRuntime) exited(id string, code int32, reason string) {
	r.Lock()
	defer r.Unlock()
	if c, ok := r.Containers[id]; ok {
		c.State = cri.ContainerState_CONTAINER_EXITED
		c.FinishedAt = time.Now().UnixNano()
		c.ExitCode = code
		c.Reason = reason
	}
}

func (r *processRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if process := r.processOf(c); process != nil {
		process.stop(time.Duration(timeout) * time.Second)
		return nil
	}
	return r.FakeRuntimeService.StopContainer(ctx, id, timeout)
}

func (r *processRuntime) RemoveContainer(ctx context.Context, id string) error {
	r.mu.Lock()
	c := r.containers[id]
	delete(r.containers, id)
	r.mu.Unlock()
	if c != nil {
		if c.process != nil {
			c.process.stop(0)
		}
		if err := errors.Join(os.RemoveAll(c.dir), os.RemoveAll(c.logPath)); err != nil {
			return fmt.Errorf("remove the files of container %s: %w", id, err)
		}
	}
	return r.FakeRuntimeService.RemoveContainer(ctx, id)
}

// ContainerStatus adds the resources: a resize is complete only when the
// runtime reports the new ones.
func (r *processRuntime) ContainerStatus(ctx context.Context, id string, verbose bool) (*cri.ContainerStatusResponse, error) {
	response, err := r.FakeRuntimeService.ContainerStatus(ctx, id, verbose)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil && c.resources != nil {
		linux := proto.Clone(c.resources).(*cri.LinuxContainerResources)
		response.Status.Resources = &cri.ContainerResources{Linux: linux}
	}
	return response, nil
}

func (r *processRuntime) UpdateContainerResources(_ context.Context, id string, wanted *cri.ContainerResources) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.process != nil {
		for _, g := range c.process.cgroups {
			if err := g.limit(wanted.GetLinux()); err != nil {
				return err
			}
		}
	}
	if c.resources == nil {
		c.resources = &cri.LinuxContainerResources{}
	}
	// Zero means "leave it", as it does to real runtimes.
	keepOrSet(&c.resources.CpuPeriod, wanted.GetLinux().GetCpuPeriod())
	keepOrSet(&c.resources.CpuQuota, wanted.GetLinux().GetCpuQuota())
	keepOrSet(&c.resources.CpuShares, wanted.GetLinux().GetCpuShares())
	keepOrSet(&c.resources.MemoryLimitInBytes, wanted.GetLinux().GetMemoryLimitInBytes())
	return nil
}

func keepOrSet(field *int64, value int64) {
	if value != 0 {
		*field = value
	}
}

func (r *processRuntime) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return nil, fmt.Errorf("container %s not found", id)
	}
	return c, nil
}

func (r *processRuntime) processOf(c *container) *containerProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.process
}

// killAll ends every container at once, when the node itself ends.
func (r *processRuntime) killAll() {
	r.mu.Lock()
	var running []*containerProcess
	for _, c := range r.containers {
		if c.process != nil {
			running = append(running, c.process)
		}
	}
	r.mu.Unlock()
	for _, process := range running {
		process.kill()
	}
	for _, process := range running {
		<-process.done
	}
}
