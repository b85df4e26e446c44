// Command gateway is what the pod of a Gateway runs in the lab: an HTTP server that
// sends each request to one of the backends that the lab's controller (gateway.go in the
// folder above) has found, by their weights.
//
//	gateway --listen :80 --control :15021
//
// The controller puts routes to /routes of the control address. A request without a route
// is answered with 404, and one whose backend has no endpoint with 503, as the Gateway API
// asks for.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// route is a rule of an HTTPRoute: which paths it is for, and where they lead.
type route struct {
	Prefix   string    `json:"prefix"`
	Backends []backend `json:"backends"`
}

// backend is a Service with the pods behind it, as host and port.
type backend struct {
	Weight    int      `json:"weight"`
	Endpoints []string `json:"endpoints"`
}

// gateway has the routes of the moment.
type gateway struct {
	routes atomic.Pointer[[]route]
	pick   func(n int) int // a number below n
	proxy  http.RoundTripper
}

func main() {
	listen := flag.String("listen", ":80", "where requests come in")
	control := flag.String("control", ":15021", "where routes come in")
	flag.Parse()
	g := newGateway(rand.IntN)
	failed := make(chan error)
	for address, handler := range map[string]http.HandlerFunc{*listen: g.forward, *control: g.learn} {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.ListenAndServe() }()
	}
	fmt.Fprintln(os.Stderr, "gateway:", <-failed)
	os.Exit(1)
}

func newGateway(pick func(int) int) *gateway {
	g := &gateway{pick: pick, proxy: &http.Transport{MaxIdleConnsPerHost: 100}}
	g.routes.Store(&[]route{})
	return g
}

// learn replaces the routes.
func (g *gateway) learn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || r.URL.Path != "/routes" {
		http.NotFound(w, r)
		return
	}
	var routes []route
	if err := json.NewDecoder(r.Body).Decode(&routes); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.routes.Store(&routes)
}

// forward answers a request by a backend's answer. Nothing is tried again: a request
// that a backend loses is lost for the client.
func (g *gateway) forward(w http.ResponseWriter, r *http.Request) {
	endpoint, err := choose(*g.routes.Load(), r.URL.Path, g.pick)
	if errors.Is(err, errNoRoute) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	target := &url.URL{Scheme: "http", Host: endpoint}
	(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target); p.SetXForwarded() },
		Transport: g.proxy,
	}).ServeHTTP(w, r)
}

var (
	errNoRoute    = errors.New("no HTTPRoute of this Gateway matches the path")
	errNoEndpoint = errors.New("the backend has no endpoint that is ready")
)

// choose finds the endpoint for a path: of the route with the longest prefix, a backend
// by the weights, whether or not it has endpoints, and any of its endpoints.
func choose(routes []route, path string, pick func(n int) int) (string, error) {
	best := -1
	for i, r := range routes {
		if hasPrefix(path, r.Prefix) && (best < 0 || len(r.Prefix) > len(routes[best].Prefix)) {
			best = i
		}
	}
	if best < 0 {
		return "", errNoRoute
	}
	sum := 0
	for _, b := range routes[best].Backends {
		sum += b.Weight
	}
	if sum <= 0 {
		return "", errNoEndpoint
	}
	at := pick(sum)
	for _, b := range routes[best].Backends {
		if at -= b.Weight; at < 0 {
			if len(b.Endpoints) == 0 {
				return "", errNoEndpoint
			}
			return b.Endpoints[pick(len(b.Endpoints))], nil
		}
	}
	return "", errNoEndpoint
}

// hasPrefix compares whole elements of a path, as PathPrefix does.
func hasPrefix(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '/')
}
