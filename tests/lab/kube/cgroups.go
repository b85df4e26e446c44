package main

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

// containerManager is the kubelet's stub with pod cgroups that remember what
// was set. The stub's own ones make every resize fail, because a resize reads
// the pod's present limits back. It has the CPU manager policy that it is given.
type containerManager struct {
	cm.ContainerManager
	cpuManager string
	pods       *podCgroups
}

func newContainerManager(cpuManager string) cm.ContainerManager {
	stub := cm.NewStubContainerManagerWithDevicePluginResource(v1.ResourceList{})
	return &containerManager{
		ContainerManager: stub,
		cpuManager:       cpuManager,
		pods: &podCgroups{
			PodContainerManager: stub.NewPodContainerManager(),
			set:                 map[types.UID]*cm.ResourceConfig{},
		},
	}
}

func (c *containerManager) GetNodeConfig() cm.NodeConfig {
	config := c.ContainerManager.GetNodeConfig()
	config.CPUManagerPolicy = c.cpuManager
	return config
}

func (c *containerManager) NewPodContainerManager() cm.PodContainerManager { return c.pods }

type podCgroups struct {
	cm.PodContainerManager
	mu  sync.Mutex
	set map[types.UID]*cm.ResourceConfig
}

func (p *podCgroups) GetPodCgroupMemoryUsage(*v1.Pod) (uint64, error) { return 0, nil }

func (p *podCgroups) GetPodCgroupConfig(pod *v1.Pod, _ v1.ResourceName) (*cm.ResourceConfig, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.config(pod), nil
}

func (p *podCgroups) SetPodCgroupConfig(_ klog.Logger, pod *v1.Pod, wanted *cm.ResourceConfig) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	current := *p.config(pod)
	overwrite(&current.Memory, wanted.Memory)
	overwrite(&current.CPUShares, wanted.CPUShares)
	overwrite(&current.CPUQuota, wanted.CPUQuota)
	overwrite(&current.CPUPeriod, wanted.CPUPeriod)
	p.set[pod.UID] = &current
	return nil
}

// config is what was set, else what the pod's spec asks for. A cgroup has a
// value for everything: what a best-effort pod does not ask for is unlimited.
func (p *podCgroups) config(pod *v1.Pod) *cm.ResourceConfig {
	if set := p.set[pod.UID]; set != nil {
		return set
	}
	const quotaPeriod = uint64(100000) // microseconds, the kernel's default
	config := cm.ResourceConfigForPod(pod, true, quotaPeriod, false, "None")
	orElse(&config.Memory, -1)
	orElse(&config.CPUQuota, -1)
	orElse(&config.CPUPeriod, quotaPeriod)
	orElse(&config.CPUShares, cm.MinShares)
	return config
}

func orElse[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func overwrite[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}
