package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Within the pods' network of 256 addresses, beside those of pods.
const (
	lastPod     = 250 // pods have 1 to this
	hostPart    = 253 // the machine, as pods see it
	gatewayPart = 254 // the node, the pods' default gateway
)

// gatewayHardware is the hardware address of the pods' default gateway.
var gatewayHardware = net.HardwareAddr{0x02, 'r', 'a', 'y', 'f', 't'}

// kubernetesService is the address of the Service `kubernetes`, the first of the
// range that the lab gives to its API server.
const kubernetesService = "10.0.0.1"

// podNetwork gives each pod a network namespace of its own: an address that it
// may bind, a loopback and ports of its own, as in a real cluster.
//
// The node has a namespace too, with a bridge to which its pods and the machine
// are connected, and in which the address of the Service `kubernetes` leads to the
// API server. All of that hangs on files that only this process has open, so the
// kernel removes it when the node ends, however it ends.
type podNetwork struct {
	prefix  string // "198.18.0": the network is 198.18.0.0/24
	machine netns.NsHandle
	node    netns.NsHandle
	inNode  *netlink.Handle
	bridge  int

	mu   sync.Mutex
	pods map[string]netns.NsHandle // by sandbox
	made int
}

// newPodNetwork makes the node's part; link is the name of the machine's interface.
func newPodNetwork(prefix, link, apiServer string, hosts outsideOptions) (*podNetwork, error) {
	n := &podNetwork{prefix: prefix, pods: map[string]netns.NsHandle{}}
	var err error
	if n.machine, err = netns.Get(); err != nil {
		return nil, fmt.Errorf("find the machine's network: %w", err)
	}
	var listener, outside net.Listener
	n.node, err = newNamespace(func() (err error) {
		// It takes connections once the bridge has its addresses.
		if err := n.buildBridge(); err != nil {
			return err
		}
		if listener, err = net.Listen("tcp", net.JoinHostPort(kubernetesService, "443")); err != nil {
			return err
		}
		outside, err = net.Listen("tcp", net.JoinHostPort(n.address(gatewayPart), "443"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a network for pods (this needs root): %w", err)
	}
	if n.inNode, err = netlink.NewHandleAt(n.node); err != nil {
		return nil, fmt.Errorf("configure the node's network: %w", err)
	}
	if err := n.connectMachine(link); err != nil {
		return nil, fmt.Errorf("connect the machine to the pods' network: %w", err)
	}
	go forward(listener, apiServer)
	if hosts.folder == "" {
		return n, outside.Close()
	}
	go func() { _ = serveOutside(outside, hosts) }()
	return n, nil
}

// newNamespace makes a network namespace and does something in it.
func newNamespace(do func() error) (made netns.NsHandle, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is in another network from here on: it stays locked and ends
		// with this goroutine.
		runtime.LockOSThread()
		if made, err = netns.New(); err != nil {
			return
		}
		if err = do(); err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	<-done
	return made, err
}

// buildBridge gives the namespace that it is called in a bridge with the node's
// addresses.
func (n *podNetwork) buildBridge() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pods"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	n.bridge = bridge.Index
	// By itself a bridge takes the lowest address of what is connected to it, which
	// changes with the pods; the others would go on sending to the one they know.
	if err := netlink.LinkSetHardwareAddr(bridge, gatewayHardware); err != nil {
		return fmt.Errorf("give the bridge a hardware address: %w", err)
	}
	for _, address := range []string{n.address(gatewayPart) + "/24", kubernetesService + "/32"} {
		if err := addAddress(&netlink.Handle{}, bridge, address); err != nil {
			return err
		}
	}
	return errors.Join(up(&netlink.Handle{}, "lo"), up(&netlink.Handle{}, "pods"))
}

// connectMachine adds an interface to the machine that leads to the bridge.
func (n *podNetwork) connectMachine(link string) error {
	machine, err := netlink.NewHandleAt(n.machine)
	if err != nil {
		return err
	}
	defer machine.Close()
	// That of a node that has just crashed may still be there: the kernel takes its
	// time.
	if old, err := machine.LinkByName(link); err == nil {
		if err := machine.LinkDel(old); err != nil {
			return fmt.Errorf("remove an earlier %s: %w", link, err)
		}
	}
	pair := n.pair("machine", link, n.machine)
	if err := n.inNode.LinkAdd(pair); err != nil {
		return err
	}
	if err := up(n.inNode, pair.Name); err != nil {
		return err
	}
	return configure(machine, link, n.address(hostPart))
}

// add makes a sandbox' network.
func (n *podNetwork) add(sandbox, address string) error {
	pod, err := newNamespace(func() error { return up(&netlink.Handle{}, "lo") })
	if err != nil {
		return fmt.Errorf("make a pod's network namespace: %w", err)
	}
	if err := n.connect(pod, address); err != nil {
		return errors.Join(fmt.Errorf("connect a pod to the network: %w", err), pod.Close())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[sandbox] = pod
	return nil
}

func (n *podNetwork) connect(pod netns.NsHandle, address string) error {
	n.mu.Lock()
	n.made++
	name := fmt.Sprintf("pod%d", n.made)
	n.mu.Unlock()
	if err := n.inNode.LinkAdd(n.pair(name, "eth0", pod)); err != nil {
		return err
	}
	if err := up(n.inNode, name); err != nil {
		return err
	}
	inPod, err := netlink.NewHandleAt(pod)
	if err != nil {
		return err
	}
	defer inPod.Close()
	if err := configure(inPod, "eth0", address); err != nil {
		return err
	}
	return inPod.RouteAdd(&netlink.Route{Gw: net.ParseIP(n.address(gatewayPart))})
}

// remove forgets a sandbox' network, which ends with its last process.
func (n *podNetwork) remove(sandbox string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod, found := n.pods[sandbox]; found {
		_ = pod.Close()
		delete(n.pods, sandbox)
	}
}

// start starts a container's process in the network of its sandbox; it has to be
// called on a locked thread.
func (n *podNetwork) start(sandbox string, start func() error) error {
	n.mu.Lock()
	pod, found := n.pods[sandbox]
	n.mu.Unlock()
	if !found {
		return fmt.Errorf("sandbox %s has no network", sandbox)
	}
	if err := netns.Set(pod); err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	return errors.Join(start(), netns.Set(n.machine))
}

// pair is a cable from the node's bridge into another namespace.
func (n *podNetwork) pair(here, there string, in netns.NsHandle) *netlink.Veth {
	return &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: here, MasterIndex: n.bridge},
		PeerName:      there,
		PeerNamespace: netlink.NsFd(in),
	}
}

func (n *podNetwork) address(part int) string { return fmt.Sprintf("%s.%d", n.prefix, part) }

func configure(in *netlink.Handle, name, address string) error {
	link, err := in.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	if err := addAddress(in, link, address+"/24"); err != nil {
		return err
	}
	return in.LinkSetUp(link)
}

func addAddress(in *netlink.Handle, link netlink.Link, text string) error {
	address, err := netlink.ParseAddr(text)
	if err != nil {
		return err
	}
	if err := in.AddrAdd(link, address); err != nil {
		return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, text, err)
	}
	return nil
}

func up(in *netlink.Handle, name string) error {
	link, err := in.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	return in.LinkSetUp(link)
}

// forward passes connections on to the API server, which is on the machine's
// loopback.
func forward(listener net.Listener, target string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			defer to.Close()
			done := make(chan struct{}, 2)
			for _, pair := range [][2]net.Conn{{to, from}, {from, to}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					done <- struct{}{}
				}()
			}
			<-done
		}()
	}
}
