package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// gateways are the lab's implementation of the Gateway API, for Gateways of any class
// and the HTTPRoutes of their namespace: a pod for each Gateway, which sends requests to
// the backends by their weights (gateway/main.go), and the status of both kinds. The
// address of a Gateway is its pod's, which other pods and the machine reach.
//
// It knows path prefixes, Services as backends and weights; no hostnames, filters,
// headers, TLS or further namespaces.
type gateways struct {
	lab      *Lab
	cluster  *store
	gateways collection[gateway]
	routes   collection[httpRoute]
	changed  chan struct{}
	http     http.Client
	// What was written last, so that it is written again only if it changes: routes by
	// pod, and statuses by path.
	pushed, told map[string]string
}

const (
	// GatewaysCommand is the hidden command by which the lab's command line runs
	// gateways in a process of their own: <executable> GatewaysCommand DIR.
	GatewaysCommand = "gateways"
	gatewayAPI      = "/apis/gateway.networking.k8s.io/v1"
	// gatewayControl is the port at which a Gateway's pod takes routes.
	gatewayControl = 15021
	// gatewayRetry is how soon what has failed is tried again.
	gatewayRetry = time.Second
)

// startGateways installs the definitions of the Gateway API as its module has them, and
// follows its objects, as startMachines does.
func (l *Lab) startGateways(ctx context.Context) error {
	if err := l.createCRDs(ctx, l.state.GatewayCRDs); err != nil {
		return err
	}
	var err error
	l.stopGateways, err = l.beside(GatewaysCommand, (*Lab).followGateways)
	return err
}

// ServeGateways is what GatewaysCommand runs.
func ServeGateways(ctx context.Context, dir string) error {
	return serveBeside(ctx, dir, (*Lab).followGateways)
}

func (l *Lab) followGateways(ctx context.Context) {
	g := &gateways{
		lab: l, changed: make(chan struct{}, 1), pushed: map[string]string{}, told: map[string]string{},
		http: http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	signal := func() {
		select {
		case g.changed <- struct{}{}:
		default: // it is to look again already
		}
	}
	g.cluster = newStore(signal)
	g.gateways = collection[gateway]{path: gatewayAPI + "/gateways", changed: signal, key: func(o gateway) string { return o.Metadata.path() }}
	g.routes = collection[httpRoute]{path: gatewayAPI + "/httproutes", changed: signal, key: func(o httpRoute) string { return o.Metadata.path() }}
	var running sync.WaitGroup
	running.Go(func() { g.cluster.follow(ctx, l.api) })
	running.Go(func() { g.gateways.follow(ctx, l.api) })
	running.Go(func() { g.routes.follow(ctx, l.api) })
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.changed:
		}
		if err := g.serveAll(ctx); err != nil && ctx.Err() == nil {
			_ = writeFile(l.LogFile(GatewaysCommand), []byte(err.Error()+"\n"))
			time.AfterFunc(gatewayRetry, signal)
		}
	}
}

func (g *gateways) serveAll(ctx context.Context) error {
	if !g.cluster.services.isListed() || !g.cluster.pods.isListed() || !g.routes.isListed() {
		return nil // the lists come
	}
	var errs []error
	for _, gw := range g.gateways.all() {
		if gw.Metadata.DeletionTimestamp == "" {
			errs = append(errs, g.serve(ctx, gw))
		}
	}
	return errors.Join(errs...)
}

// serve brings a Gateway's pod, its routes and the statuses up to date.
func (g *gateways) serve(ctx context.Context, gw gateway) error {
	now := g.cluster.cluster()
	p, found := now.pod(gw.Metadata.Namespace, gw.podName())
	if !found {
		return g.create(ctx, gw)
	}
	if !p.ready() {
		delete(g.pushed, p.Metadata.path()) // it may be another process
		return g.tellGateway(ctx, gw, "", 0)
	}
	var rules []rule
	attached := 0
	for _, r := range g.routes.all() {
		if !r.belongsTo(gw) {
			continue
		}
		attached++
		of, missing := now.rules(r)
		rules = append(rules, of...)
		if err := g.tellRoute(ctx, gw, r, missing); err != nil {
			return err
		}
	}
	if err := g.push(ctx, p, rules); err != nil {
		return err
	}
	return g.tellGateway(ctx, gw, p.Status.PodIP, attached)
}

// create makes the pod of a Gateway, which goes with it.
func (g *gateways) create(ctx context.Context, gw gateway) error {
	pod, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": gw.podName(), "labels": map[string]string{"gateway.networking.k8s.io/gateway-name": gw.Metadata.Name},
			"ownerReferences": []any{map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": gw.Metadata.Name, "uid": gw.Metadata.UID}},
		},
		"spec": map[string]any{
			"terminationGracePeriodSeconds": 1,
			"containers": []any{map[string]any{
				"name": "gateway", "image": "lab/gateway",
				"command":        []string{g.lab.state.Gateway, "--listen=:" + strconv.Itoa(gw.port()), "--control=:" + strconv.Itoa(gatewayControl)},
				"readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": gatewayControl}, "periodSeconds": 1},
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encode a Gateway's pod: %w", err)
	}
	_, err = g.lab.api.call(ctx, http.MethodPost, "/api/v1/namespaces/"+gw.Metadata.Namespace+"/pods", "application/json", pod)
	var refused *StatusError
	if errors.As(err, &refused) && refused.Code == http.StatusConflict {
		return nil // it is on its way here
	}
	return err
}

// push gives a Gateway's pod its routes.
func (g *gateways) push(ctx context.Context, p pod, rules []rule) error {
	body, err := json.Marshal(rules)
	if err != nil {
		return fmt.Errorf("encode routes: %w", err)
	}
	if g.pushed[p.Metadata.path()] == p.Metadata.UID+string(body) {
		return nil
	}
	url := "http://" + net.JoinHostPort(p.Status.PodIP, strconv.Itoa(gatewayControl)) + "/routes"
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := g.http.Do(request)
	if err != nil {
		return fmt.Errorf("give routes to %s: %w", p.Metadata.path(), err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s does not take its routes: %s", p.Metadata.path(), answer.Status)
	}
	g.pushed[p.Metadata.path()] = p.Metadata.UID + string(body)
	return nil
}
