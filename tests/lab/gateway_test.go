package lab_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

// weighed are two servers that answer with their names, behind a Gateway.
const weighed = `
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: net, labels: {app: one}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: example/web, command: [sh, -c, "cd /tmp && echo one > index.html && exec python3 -m http.server 8000"], readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: net, labels: {app: two}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: example/web, command: [sh, -c, "cd /tmp && echo two > index.html && exec python3 -m http.server 8000"], readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: one, namespace: net}
spec: {selector: {app: one}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: v1
kind: Service
metadata: {name: two, namespace: net}
spec: {selector: {app: two}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: door, namespace: net}
spec: {gatewayClassName: any, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: way, namespace: net}
spec:
  parentRefs: [{name: door}]
  rules: [{backendRefs: [{name: one, port: 80, weight: 100}, {name: two, port: 80, weight: 0}]}]
`

// A Gateway's requests go where the weights of its HTTPRoute say, and both say when they
// are ready, as KubeRay's operator wants to know it.
func TestGatewaysRouteByWeight(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	l := start(t, lab.Options{Nodes: 1, Cores: 4, Memory: "8Gi", PodNetwork: true, With: []string{lab.WithGateway}})
	labtest.Kubectl(t, l, "create", "namespace", "net")
	labtest.Kubectl(t, l, "wait", "--for=create", "serviceaccount/default", "-n", "net", "--timeout=30s")
	apply(t, l, weighed)
	labtest.Kubectl(t, l, "wait", "--for=condition=Programmed", "gateway/door", "-n", "net", "--timeout=60s")
	labtest.Kubectl(t, l, "wait", "--for=condition=Ready", "pod/one", "pod/two", "-n", "net", "--timeout=60s")
	url := "http://" + labtest.Kubectl(t, l, "get", "gateway", "door", "-n", "net", "-o", "jsonpath={.status.addresses[0].value}") + "/"
	for _, to := range []struct{ name, weights string }{
		{"one", ""},
		{"two", `[{"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": 0}, {"op": "replace", "path": "/spec/rules/0/backendRefs/1/weight", "value": 100}]`},
	} {
		if to.weights != "" {
			labtest.Kubectl(t, l, "patch", "httproute", "way", "-n", "net", "--type=json", "-p", to.weights)
		}
		err := lab.Eventually(t.Context(), time.Minute, "requests go to "+to.name, func() error { return answers(url, to.name) })
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := answers(url, to.name); err != nil {
				t.Error(err)
			}
		}
	}
	route := func(condition string) string {
		return labtest.Kubectl(t, l, "get", "httproute", "way", "-n", "net", "-o", `jsonpath={.status.parents[0].conditions[?(@.type=="`+condition+`")].status}`)
	}
	if got := route("Accepted") + " " + route("ResolvedRefs"); got != "True True" {
		t.Errorf("the route is accepted and resolved: %s", got)
	}
	labtest.Kubectl(t, l, "delete", "service", "two", "-n", "net")
	err := lab.Eventually(t.Context(), time.Minute, "the route misses its backend", func() error {
		if got := route("ResolvedRefs"); got != "False" {
			return fmt.Errorf("resolved: %s", got)
		}
		return answers(url, "no endpoint")
	})
	if err != nil {
		t.Error(err)
	}
	labtest.Kubectl(t, l, "delete", "gateway", "door", "-n", "net")
	labtest.Kubectl(t, l, "wait", "--for=delete", "pod/door-lab", "-n", "net", "--timeout=60s")
}

// answers is nil if the answer of a URL has the text.
func answers(url, text string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(body), text) {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return err
}
