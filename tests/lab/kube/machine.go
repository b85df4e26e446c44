package main

import (
	cadvisor "github.com/google/cadvisor/lib/model"
	"k8s.io/klog/v2"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
)

// machine is what the kubelet finds when it looks at its hardware.
type machine struct {
	cadvisortest.Fake
	cores  int
	memory uint64
}

func (m *machine) MachineInfo(klog.Logger) (*cadvisor.MachineInfo, error) {
	return &cadvisor.MachineInfo{
		NumCores:       m.cores,
		InstanceID:     cadvisor.InstanceID(m.NodeName),
		MemoryCapacity: m.memory,
	}, nil
}
