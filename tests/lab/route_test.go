package lab

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// clusterOf reads a cluster from the objects as the API server returns them.
func clusterOf(t *testing.T, services, pods, nodes string) cluster {
	t.Helper()
	var c cluster
	for text, into := range map[string]any{services: &c.services, pods: &c.pods, nodes: &c.nodes} {
		if err := json.Unmarshal([]byte("["+text+"]"), into); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

const (
	hook      = `{"metadata":{"name":"hook","namespace":"sys"},"spec":{"clusterIP":"10.0.0.7","selector":{"app":"hook"},"ports":[{"port":443,"targetPort":"https"},{"port":80,"targetPort":8080},{"port":9090}]}}`
	headless  = `{"metadata":{"name":"head","namespace":"ray"},"spec":{"clusterIP":"None","publishNotReadyAddresses":true,"selector":{"ray":"head"},"ports":[{"port":6379}]}}`
	hookPod   = `{"metadata":{"name":"hook-1","namespace":"sys","labels":{"app":"hook"},"creationTimestamp":"2026-01-01T00:00:01Z"},"spec":{"containers":[{"ports":[{"name":"https","containerPort":8443}]}]},"status":{"phase":"Running","podIP":"127.0.1.3","conditions":[{"type":"Ready","status":"True"}]}}`
	olderPod  = `{"metadata":{"name":"hook-2","namespace":"sys","labels":{"app":"hook"},"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"ports":[{"name":"https","containerPort":8444}]}]},"status":{"phase":"Running","podIP":"127.0.1.4","conditions":[{"type":"Ready","status":"True"}]}}`
	notReady  = `{"metadata":{"name":"hook-3","namespace":"sys","labels":{"app":"hook"},"creationTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running","podIP":"127.0.1.5","conditions":[{"type":"Ready","status":"False"}]}}`
	dying     = `{"metadata":{"name":"hook-4","namespace":"sys","labels":{"app":"hook"},"deletionTimestamp":"2026-01-01T00:00:09Z"},"status":{"phase":"Running","podIP":"127.0.1.6","conditions":[{"type":"Ready","status":"True"}]}}`
	elsewhere = `{"metadata":{"name":"hook-5","namespace":"other","labels":{"app":"hook"}},"status":{"phase":"Running","podIP":"127.0.1.8","conditions":[{"type":"Ready","status":"True"}]}}`
	head      = `{"metadata":{"name":"demo-head","namespace":"ray","labels":{"ray":"head"}},"status":{"phase":"Running","podIP":"127.0.1.9"}}`
	networked = `{"metadata":{"name":"web","namespace":"sys"},"status":{"phase":"Running","podIP":"198.18.0.7"}}`
	kubelet   = `{"metadata":{"name":"node-1"},"status":{"addresses":[{"address":"192.0.2.10"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":20250}}}}`
)

func TestRoute(t *testing.T) {
	c := clusterOf(t, hook+","+headless, strings.Join([]string{hookPod, notReady, dying, elsewhere, head, networked}, ","), kubelet)
	first := func(int) int { return 0 }
	for _, test := range []struct {
		name, host string
		port       int
		want       string // empty: an error
	}{
		{"named target port", "10.0.0.7", 443, "127.0.1.3:8443"},
		{"numeric target port", "10.0.0.7", 80, "127.0.1.3:8080"},
		{"no target port", "10.0.0.7", 9090, "127.0.1.3:9090"},
		{"service name", "hook.sys.svc", 443, "127.0.1.3:8443"},
		{"full service name", "hook.sys.svc.cluster.local", 443, "127.0.1.3:8443"},
		{"not ready but published", "head.ray.svc", 6379, "127.0.1.9:6379"},
		{"kubelet", "192.0.2.10", 20250, "127.0.0.1:20250"},
		{"pod itself", "127.0.1.3", 8443, "127.0.1.3:8443"},
		{"pod with a network of its own", "198.18.0.7", 8443, "198.18.0.7:8443"},
		{"address of no pod", "198.18.0.8", 8443, ""},
		{"unknown port", "10.0.0.7", 8443, ""},
		{"unknown service", "10.0.0.9", 443, ""},
		{"another port of the node", "192.0.2.10", 22, ""},
		{"outside", "192.0.2.99", 443, ""},
		{"outside by name", "example.org", 443, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := c.route(test.host, test.port, first)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("route(%s:%d) = %q, %v; want %q", test.host, test.port, got, err, test.want)
			}
		})
	}
}

func TestRouteChoosesAmongReadyPods(t *testing.T) {
	c := clusterOf(t, hook, strings.Join([]string{hookPod, olderPod, notReady}, ","), "")
	seen := map[string]bool{}
	for i := range 2 {
		address, err := c.route("10.0.0.7", 443, func(n int) int {
			if n != 2 {
				t.Errorf("chooses among %d backends, want 2", n)
			}
			return i
		})
		if err != nil {
			t.Fatal(err)
		}
		seen[address] = true
	}
	if !seen["127.0.1.3:8443"] || !seen["127.0.1.4:8444"] {
		t.Errorf("reached %v", seen)
	}
}

func TestRouteWithoutReadyPod(t *testing.T) {
	c := clusterOf(t, hook, notReady+","+dying, "")
	if address, err := c.route("10.0.0.7", 443, func(int) int { return 0 }); err == nil {
		t.Errorf("route = %s, want an error", address)
	}
}

func TestHosts(t *testing.T) {
	c := clusterOf(t, hook+","+headless, strings.Join([]string{hookPod, olderPod, head}, ","), "")
	want := `127.0.0.1 localhost
127.0.1.4 hook.sys.svc.cluster.local hook.sys.svc hook.sys
127.0.1.9 head.ray.svc.cluster.local head.ray.svc head.ray
`
	if got := c.hosts(""); got != want {
		t.Errorf("hosts:\n%s\nwant:\n%s", got, want)
	}
	for namespace, short := range map[string]string{"sys": "hook.sys hook\n", "ray": "head.ray head\n"} {
		if got := c.hosts(namespace); !strings.Contains(got, short) || len(got) != len(want)+len(" hook") {
			t.Errorf("hosts of namespace %s:\n%s", namespace, got)
		}
	}
	if got := c.namespaces(); !slices.Equal(got, []string{"ray", "sys"}) {
		t.Errorf("namespaces: %v", got)
	}
}
