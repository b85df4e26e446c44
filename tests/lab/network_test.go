package lab_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// twoServers listen at the same port of all addresses, and know the API server by
// the Service's address.
const twoServers = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: net}
spec: {selector: {app: web}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: net, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: example/web, command: [python3, -m, http.server, "8000", --directory, /var/run/secrets], readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: net, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: example/web, command: [python3, -m, http.server, "8000", --directory, /var/run/secrets], readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}}]
`

const askServer = `
import sys, urllib.request
print(urllib.request.urlopen(f"http://{sys.argv[1]}:8000/", timeout=20).read())
`

const askAPIServer = `
import os, ssl, urllib.request
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/version"
trust = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
print(urllib.request.urlopen(url, context=trust, timeout=20).status, url)
`

const askOutside = `
import os, ssl, urllib.request, urllib.error
trust = ssl.create_default_context(cafile=os.environ["REQUESTS_CA_BUNDLE"])
there = urllib.request.urlopen("https://files.example.org/archive/one", context=trust, timeout=20).read().decode()
try:
    urllib.request.urlopen("https://files.example.org/../../etc/hostname", context=trust, timeout=20)
except urllib.error.HTTPError as refused:
    print(there, refused.code)
`

func TestPodsHaveNetworks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Join(outside, "files.example.org", "archive"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "files.example.org", "archive", "one"), []byte("first"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := start(t, lab.Options{Nodes: 1, Cores: 4, Memory: "8Gi", PodNetwork: true, Outside: outside})
	labtest.Kubectl(t, l, "create", "namespace", "net")
	labtest.Kubectl(t, l, "wait", "--for=create", "serviceaccount/default", "-n", "net", "--timeout=30s")
	apply(t, l, twoServers)
	labtest.Kubectl(t, l, "wait", "--for=condition=Ready", "pod/one", "pod/two", "-n", "net", "--timeout=60s")
	address := func(pod string) string {
		return labtest.Kubectl(t, l, "get", "pod", pod, "-n", "net", "-o", "jsonpath={.status.podIP}")
	}
	// The machine, another pod by its address and by the Service's name, and the pod
	// itself find the servers.
	if answer, err := http.Get("http://" + net.JoinHostPort(address("one"), "8000")); err != nil {
		t.Errorf("this machine asks a pod: %v", err)
	} else {
		answer.Body.Close()
	}
	for _, host := range []string{address("two"), "web", "web.net.svc.cluster.local", "127.0.0.1"} {
		if said := labtest.Kubectl(t, l, "exec", "-n", "net", "one", "--", "python3", "-c", askServer, host); !strings.Contains(said, "kubernetes.io") {
			t.Errorf("pod one asks %s: %q", host, said)
		}
	}
	if said := labtest.Kubectl(t, l, "exec", "-n", "net", "one", "--", "python3", "-c", askAPIServer); said != "200 https://10.0.0.1:443/version" {
		t.Errorf("the API server for pods: %q", said)
	}
	if said := labtest.Kubectl(t, l, "exec", "-n", "net", "one", "--", "python3", "-c", askOutside); said != "first 404" {
		t.Errorf("a host of the internet: %q", said)
	}
	// The gateway's hardware address must not depend on which pods there are.
	if said := labtest.Kubectl(t, l, "exec", "-n", "net", "one", "--", "cat", "/proc/net/arp"); !strings.Contains(said, "02:72:61:79:66:74") {
		t.Errorf("hardware addresses that pod one knows: %q", said)
	}
	err := lab.Eventually(t.Context(), time.Minute, "the Service has two endpoints", func() error {
		said := labtest.Kubectl(t, l, "get", "endpointslices", "-n", "net", "-o", "jsonpath={.items[*].endpoints[*].addresses[*]}")
		if len(strings.Fields(said)) != 2 || !strings.Contains(said, address("one")) {
			return fmt.Errorf("it has %q", said)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	link := "rayfit-pods" + strings.Split(address("one"), ".")[2]
	if _, err := net.InterfaceByName(link); err != nil {
		t.Errorf("the machine's interface into the network: %v", err)
	}
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	err = lab.Eventually(t.Context(), time.Minute, "nothing of the network is left", func() error {
		if _, err := net.InterfaceByName(link); err == nil {
			return fmt.Errorf("interface %s is there", link)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
