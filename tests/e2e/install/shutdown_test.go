package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
)

const hold = "test.rayfit.dev/hold" // a finalizer, so that a pod that has ended can be looked at

func TestAReplicaStopsUnderFiveHundredRequestsASecond(t *testing.T) {
	l := cluster(t)
	install(t, l, rayfit(t, "manifests", "--self-managed", "--fail-closed", "--replicas=2"))
	victim := readyPods(t, l, 2)[0].Metadata.Name

	direct := directly(t, l)
	object := goodCluster(t)
	reviews := startLoad(t, 32, 500, direct.review)
	calls := startLoad(t, 4, 40, func(ctx context.Context) error { return create(ctx, l, object) })

	labtest.Kubectl(t, l, "patch", "pod", victim, "-n", system, "--type=merge", "-p", `{"metadata":{"finalizers":["`+hold+`"]}}`)
	t.Cleanup(func() {
		_, _, _ = l.Kubectl("patch", "pod", victim, "-n", system, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	reviews.underWay(t, 300)
	calls.underWay(t, 20)
	labtest.Kubectl(t, l, "delete", "pod", victim, "-n", system, "--wait=false")
	code := exitCode(t, l, victim)

	// Far below what is meant, for a machine that is busy with other tests.
	reviews.end(t, "reviews", 500)
	calls.end(t, "calls through the API server", 40)
	if code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// exitCode waits until a pod has ended.
func exitCode(t *testing.T, l *lab.Lab, name string) (code int) {
	t.Helper()
	labtest.Eventually(t, time.Minute, name+" ends", func() error {
		list, err := pods(l)
		for _, p := range list {
			if p.Metadata.Name == name && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Terminated != nil {
				code = p.Status.ContainerStatuses[0].State.Terminated.ExitCode
				return nil
			}
		}
		return errors.Join(err, errors.New("it runs"))
	})
	return code
}

// client calls the webhook itself, over HTTP/1.1 connections that stay open,
// each to a replica that is ready when it is made: as API servers do.
type client struct {
	http  *http.Client
	body  []byte
	ready atomic.Pointer[[]string]
}

func directly(t *testing.T, l *lab.Lab) *client {
	t.Helper()
	roots, err := trust(l)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{body: review(t)}
	c.http = &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: host, NextProtos: []string{"http/1.1"}},
			MaxIdleConnsPerHost: 64,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				addresses := *c.ready.Load()
				return (&net.Dialer{}).DialContext(ctx, network, addresses[rand.IntN(len(addresses))])
			},
		},
	}
	c.follow(t, l)
	return c
}

// follow keeps the list of ready replicas, as kube-proxy does.
func (c *client) follow(t *testing.T, l *lab.Lab) {
	t.Helper()
	look := func(ctx context.Context) error {
		raw, err := l.Request(ctx, http.MethodGet, "/api/v1/namespaces/"+system+"/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dadmission", nil)
		var list struct{ Items []pod }
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		var addresses []string
		for _, p := range list.Items {
			if p.ready() {
				addresses = append(addresses, net.JoinHostPort(p.Status.PodIP, "10250"))
			}
		}
		if len(addresses) > 0 {
			c.ready.Store(&addresses)
		}
		return err
	}
	if err := look(t.Context()); err != nil || c.ready.Load() == nil {
		t.Fatalf("no replica is ready: %v", err)
	}
	startLoad(t, 1, 5, look)
}

func (c *client) remote(used httptrace.GotConnInfo) any {
	if used.Conn == nil {
		return *c.ready.Load()
	}
	return used.Conn.RemoteAddr()
}

func review(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "1", "operation": "CREATE", "namespace": team, "name": "notebook", "dryRun": true,
			"kind":     map[string]string{"group": "ray.io", "version": "v1", "kind": "RayCluster"},
			"resource": map[string]string{"group": "ray.io", "version": "v1", "resource": "rayclusters"},
			"object":   json.RawMessage(goodCluster(t)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// review asks for one judgement and checks that it is one.
func (c *client) review(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/validate?timeout=3s", bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	request.GetBody = nil // or a call that found its connection closed would be made again
	request.Header.Set("Content-Type", "application/json")
	// What kind of connection a call was lost on tells which phase of stopping lost it.
	var used httptrace.GotConnInfo
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { used = info },
	}))
	begin := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("after %s, on a connection to %v (used before: %t; idle for %s): %w",
			time.Since(begin), c.remote(used), used.Reused, used.IdleTime, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"allowed":true`)) {
		return fmt.Errorf("%s: %s", response.Status, answer)
	}
	return nil
}
