package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
)

// machines are what a node autoscaler's Node objects stand for: of each Node that
// Karpenter's KWOK provider has made, the kubelet, with the size that the Node
// says. So such Nodes become ready, and their pods start, are resized and end, as
// on any other node of the lab; their containers are on the books only.
type machines struct {
	lab     *Lab
	numbers map[string]int // of the running ones, by the Node's name
}

const (
	// MachinesCommand is the hidden command by which the lab's command line runs
	// machines in a process of their own: <executable> MachinesCommand DIR.
	MachinesCommand = "machines"
	// kwokNode selects the Nodes that the KWOK provider has made.
	kwokNode = "labelSelector=kwok.x-k8s.io%2Fnode%3Dfake"
)

// startMachines follows Nodes.
func (l *Lab) startMachines() (err error) {
	l.stopMachines, err = l.beside(MachinesCommand, (*Lab).followNodes)
	return err
}

// ServeMachines is what MachinesCommand runs.
func ServeMachines(ctx context.Context, dir string) error {
	return serveBeside(ctx, dir, (*Lab).followNodes)
}

func (l *Lab) followNodes(ctx context.Context) {
	m := &machines{lab: l, numbers: map[string]int{}}
	Follow(ctx, func() {
		present := map[string]bool{}
		initial := true
		_ = watch(ctx, l.api, "/api/v1/nodes?"+kwokNode, func(event WatchEvent[node]) {
			name := event.Object.Metadata.Name
			switch {
			case event.Type == "BOOKMARK" && initial:
				initial = false
				m.stopAllBut(present)
			case event.Type == "DELETED":
				m.stop(name)
			case event.Type != "BOOKMARK":
				present[name] = true
				m.start(event.Object)
			}
		})
	})
}

// start starts the machine of a Node, if it does not run yet.
func (m *machines) start(n node) {
	name := n.Metadata.Name
	if m.numbers[name] != 0 {
		return
	}
	number := m.freeNumber()
	if err := m.boot(n, number); err != nil {
		// The Node's next change tries again.
		_ = writeFile(m.lab.LogFile(name), []byte(err.Error()+"\n"))
		return
	}
	m.numbers[name] = number
}

func (m *machines) boot(n node, number int) error {
	cores, err := coresOf(n)
	if err != nil {
		return err
	}
	port, err := HoldPort()
	if err != nil {
		return err
	}
	return m.lab.startKubelet(nodeConfig{
		name: n.Metadata.Name, dir: m.lab.machineDir(number), port: port,
		cores: cores, memory: n.Status.Allocatable["memory"], workloads: NoProcesses,
		network: m.lab.podNetwork(number),
	})
}

// freeNumber is one that no node has whose addresses it would share.
func (m *machines) freeNumber() int {
	taken := map[int]bool{}
	for _, number := range m.numbers {
		taken[number] = true
	}
	number := m.lab.options.Nodes + 1
	for taken[number] {
		number++
	}
	return number
}

// stop ends the machine of a Node that is gone, as a cloud does.
func (m *machines) stop(name string) {
	if m.numbers[name] == 0 {
		return
	}
	_ = m.lab.stop(0, name)
	_ = os.RemoveAll(m.lab.machineDir(m.numbers[name]))
	delete(m.numbers, name)
}

func (m *machines) stopAllBut(present map[string]bool) {
	for name := range m.numbers {
		if !present[name] {
			m.stop(name)
		}
	}
}

// coresOf are the CPUs that a Node leaves to pods, and so those of its machine.
func coresOf(n node) (int, error) {
	cores, err := strconv.Atoi(n.Status.Allocatable["cpu"])
	if err != nil {
		return 0, fmt.Errorf("the node %s is to have a whole number of CPUs: %w", n.Metadata.Name, err)
	}
	return cores, nil
}

// machineDir keeps a machine's path short enough for the kubelet's sockets in it,
// whatever the name of its Node.
func (l *Lab) machineDir(number int) string { return l.path("nodes", fmt.Sprintf("m%d", number)) }
