package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// The parts of the Gateway API's objects that the lab reads.

type gateway struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Listeners []struct {
			Name string `json:"name"`
			Port int    `json:"port"`
		} `json:"listeners"`
	} `json:"spec"`
}

type httpRoute struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		ParentRefs []parentRef `json:"parentRefs"`
		Rules      []struct {
			Matches []struct {
				Path struct {
					Value string `json:"value"`
				} `json:"path"`
			} `json:"matches"`
			BackendRefs []struct {
				Name   string `json:"name"`
				Port   int    `json:"port"`
				Weight int    `json:"weight"` // the API server fills in 1
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

type parentRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// rule is what a Gateway's pod knows of a rule of an HTTPRoute (gateway/main.go).
type rule struct {
	Prefix   string        `json:"prefix"`
	Backends []ruleBackend `json:"backends"`
}

type ruleBackend struct {
	Weight    int      `json:"weight"`
	Endpoints []string `json:"endpoints"`
}

func (m metadata) path() string { return m.Namespace + "/" + m.Name }

func (gw gateway) podName() string { return gw.Metadata.Name + "-lab" }

// port is the one of its first listener; the lab serves no others.
func (gw gateway) port() int {
	for _, listener := range gw.Spec.Listeners {
		return listener.Port
	}
	return 0
}

func (r httpRoute) belongsTo(gw gateway) bool {
	for _, parent := range r.Spec.ParentRefs {
		if parent.Name == gw.Metadata.Name && r.Metadata.Namespace == gw.Metadata.Namespace {
			return true
		}
	}
	return false
}

// pod finds one by its name.
func (c cluster) pod(namespace, name string) (pod, bool) {
	for _, p := range c.pods {
		if p.Metadata.Namespace == namespace && p.Metadata.Name == name {
			return p, true
		}
	}
	return pod{}, false
}

// rules are those of an HTTPRoute with the pods behind their backends, and the first
// backend that there is not.
func (c cluster) rules(r httpRoute) (rules []rule, missing string) {
	for _, of := range r.Spec.Rules {
		var backends []ruleBackend
		for _, ref := range of.BackendRefs {
			s, found := c.service(ref.Name + "." + r.Metadata.Namespace)
			endpoints, err := c.backends(s, ref.Port)
			if (!found || err != nil) && missing == "" {
				missing = fmt.Sprintf("%s:%d", ref.Name, ref.Port)
			}
			backends = append(backends, ruleBackend{Weight: ref.Weight, Endpoints: endpoints})
		}
		for _, match := range of.Matches {
			rules = append(rules, rule{Prefix: match.Path.Value, Backends: backends})
		}
	}
	return rules, missing
}

// statusCondition is one of an object's conditions; its time is added when it is sent.
type statusCondition struct {
	Type, Status, Reason, Message string
}

func isTrue(kind, reason string) statusCondition {
	return statusCondition{Type: kind, Status: "True", Reason: reason}
}

// stamped are conditions as the API has them.
func stamped(generation int64, conditions ...statusCondition) []any {
	var all []any
	for _, c := range conditions {
		all = append(all, map[string]any{
			"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message,
			"observedGeneration": generation, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	return all
}

// tellGateway writes a Gateway's status; it has no address while its pod is not ready.
func (g *gateways) tellGateway(ctx context.Context, gw gateway, address string, attached int) error {
	programmed := statusCondition{Type: "Programmed", Status: "False", Reason: "Pending", Message: "its pod is not ready"}
	addresses := []any{}
	if address != "" {
		programmed = isTrue("Programmed", "Programmed")
		addresses = append(addresses, map[string]any{"type": "IPAddress", "value": address})
	}
	what := fmt.Sprint(gw.Metadata.UID, gw.Metadata.Generation, address, attached)
	return g.tell(ctx, gatewayAPI+"/namespaces/"+gw.Metadata.Namespace+"/gateways/"+gw.Metadata.Name, what, func() any {
		accepted := isTrue("Accepted", "Accepted")
		listeners := []any{}
		for _, listener := range gw.Spec.Listeners {
			listeners = append(listeners, map[string]any{
				"name": listener.Name, "attachedRoutes": attached,
				"supportedKinds": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}},
				"conditions":     stamped(gw.Metadata.Generation, accepted, programmed, isTrue("ResolvedRefs", "ResolvedRefs")),
			})
		}
		return map[string]any{
			"conditions": stamped(gw.Metadata.Generation, accepted, programmed),
			"addresses":  addresses, "listeners": listeners,
		}
	})
}

// tellRoute writes an HTTPRoute's status.
func (g *gateways) tellRoute(ctx context.Context, gw gateway, r httpRoute, missing string) error {
	resolved := isTrue("ResolvedRefs", "ResolvedRefs")
	if missing != "" {
		resolved = statusCondition{"ResolvedRefs", "False", "BackendNotFound", missing + " is no port of a Service"}
	}
	what := fmt.Sprint(r.Metadata.UID, r.Metadata.Generation, missing)
	return g.tell(ctx, gatewayAPI+"/namespaces/"+r.Metadata.Namespace+"/httproutes/"+r.Metadata.Name, what, func() any {
		return map[string]any{"parents": []any{map[string]any{
			"parentRef":      map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gw.Metadata.Name, "namespace": gw.Metadata.Namespace},
			"controllerName": "rayfit.dev/lab",
			"conditions":     stamped(r.Metadata.Generation, isTrue("Accepted", "Accepted"), resolved),
		}}}
	})
}

// tell writes the status of the object at a path, if it is to say something else than the
// last time.
func (g *gateways) tell(ctx context.Context, path, what string, status func() any) error {
	if g.told[path] == what {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": status()})
	if err != nil {
		return fmt.Errorf("encode a status: %w", err)
	}
	if _, err := g.lab.api.call(ctx, http.MethodPatch, path+"/status", "application/merge-patch+json", body); err != nil {
		return fmt.Errorf("write the status of %s: %w", path, err)
	}
	g.told[path] = what
	return nil
}
