package vap_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// laterFields adds the fields to KubeRay's definitions that rules are about and
// that came after the version in the lab; its API server would prune them.
func laterFields(t *testing.T) {
	t.Helper()
	texts := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	for _, kind := range []string{"RayCluster", "RayJob", "RayService", "RayCronJob"} {
		path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural(kind) + ".ray.io"
		answer, err := l.Request(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var definition map[string]any
		if err := json.Unmarshal(answer, &definition); err != nil {
			t.Fatal(err)
		}
		add(definition["spec"], "autoscalerOptions", map[string]any{"command": texts, "args": texts})
		add(definition["spec"], "workerGroupSpecs", map[string]any{"priority": map[string]any{"type": "integer"}})
		body, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Request(t.Context(), http.MethodPut, path, body); err != nil {
			t.Fatal(err)
		}
	}
	probe := rig.RayCluster("default", "probe").Set("spec.workerGroupSpecs[0].priority", 1)
	err := lab.Eventually(t.Context(), time.Minute, "the API server knows the later fields", func() error {
		stored, ok := create(t, probe, true)
		if !ok || stored.Get("spec.workerGroupSpecs[0].priority") == nil {
			return fmt.Errorf("accepted: %t, and it prunes them", ok)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// add puts properties into every schema, of an object or a list's items, of that name.
func add(node any, name string, properties map[string]any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			add(item, name, properties)
		}
	case map[string]any:
		for key, value := range node {
			schema, ok := value.(map[string]any)
			if items, list := schema["items"].(map[string]any); ok && list {
				schema = items
			}
			known, ok := schema["properties"].(map[string]any)
			if key == name && ok {
				for field, schema := range properties {
					known[field] = schema
				}
			}
			add(value, name, properties)
		}
	}
}
