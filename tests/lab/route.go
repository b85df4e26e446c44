package lab

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// cluster is what the service proxy knows of the cluster: a plain value, so
// that routing is a pure function of it.
type cluster struct {
	services []service
	pods     []pod
	nodes    []node
}

// route answers where a connection of the API server to host:port has to go.
// There may be several backends; pick chooses one of them.
func (c cluster) route(host string, port int, pick func(n int) int) (string, error) {
	if c.isKubelet(host, port) {
		return loopback(port), nil
	}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || c.isPod(host)) {
		return net.JoinHostPort(host, strconv.Itoa(port)), nil
	}
	s, found := c.service(host)
	if !found {
		return "", fmt.Errorf("%s:%d is neither a Service, nor a pod, nor a kubelet of this lab", host, port)
	}
	backends, err := c.backends(s, port)
	if err != nil {
		return "", err
	}
	if len(backends) == 0 {
		return "", fmt.Errorf("service %s/%s has no ready pod", s.Metadata.Namespace, s.Metadata.Name)
	}
	return backends[pick(len(backends))], nil
}

// isKubelet recognises a kubelet by the address in its node's status. That is
// an address of this machine, but the kubelet listens on loopback only.
func (c cluster) isKubelet(host string, port int) bool {
	for _, n := range c.nodes {
		for _, a := range n.Status.Addresses {
			if a.Address == host && n.Status.DaemonEndpoints.KubeletEndpoint.Port == port {
				return true
			}
		}
	}
	return false
}

func (c cluster) isPod(host string) bool {
	return slices.ContainsFunc(c.pods, func(p pod) bool { return p.Status.PodIP == host })
}

// service finds a Service by its cluster IP or by its DNS name.
func (c cluster) service(host string) (service, bool) {
	name := strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	for _, s := range c.services {
		if s.Spec.ClusterIP == host || s.Metadata.Name+"."+s.Metadata.Namespace == name {
			return s, true
		}
	}
	return service{}, false
}

func (c cluster) backends(s service, port int) ([]string, error) {
	index := slices.IndexFunc(s.Spec.Ports, func(p servicePort) bool { return p.Port == port })
	if index < 0 {
		return nil, fmt.Errorf("service %s/%s has no port %d", s.Metadata.Namespace, s.Metadata.Name, port)
	}
	var backends []string
	for _, p := range c.endpoints(s) {
		if target, ok := targetPort(s.Spec.Ports[index], p); ok {
			backends = append(backends, net.JoinHostPort(p.Status.PodIP, strconv.Itoa(target)))
		}
	}
	return backends, nil
}

// endpoints are the pods behind a Service, oldest first.
func (c cluster) endpoints(s service) []pod {
	var pods []pod
	for _, p := range c.pods {
		if s.selects(p) && p.live() && (p.ready() || s.Spec.PublishNotReadyAddresses) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b pod) int {
		return cmp.Or(cmp.Compare(a.Metadata.CreationTimestamp, b.Metadata.CreationTimestamp), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return pods
}

func targetPort(port servicePort, p pod) (int, bool) {
	switch target := port.TargetPort.(type) {
	case float64:
		return int(target), true
	case string:
		return namedPort(target, p)
	default:
		return port.Port, true
	}
}

func namedPort(name string, p pod) (int, bool) {
	for _, container := range p.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}

// hosts renders an /etc/hosts in place of the cluster's DNS: each Service's
// names lead to its oldest pod, and in its own namespace its short one too. A
// name leads to an address only, so inside the cluster a Service's port must
// equal its target port.
func (c cluster) hosts(namespace string) string {
	var out strings.Builder
	out.WriteString("127.0.0.1 localhost\n")
	for _, s := range c.services {
		if pods := c.endpoints(s); len(pods) > 0 {
			name := s.Metadata.Name + "." + s.Metadata.Namespace
			fmt.Fprintf(&out, "%s %s.svc.cluster.local %s.svc %s", pods[0].Status.PodIP, name, name, name)
			if s.Metadata.Namespace == namespace {
				out.WriteString(" " + s.Metadata.Name)
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// namespaces are those that have pods or Services.
func (c cluster) namespaces() []string {
	var names []string
	for _, s := range c.services {
		names = append(names, s.Metadata.Namespace)
	}
	for _, p := range c.pods {
		names = append(names, p.Metadata.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
