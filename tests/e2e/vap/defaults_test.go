package vap_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// asked are fixtures in which requests or resize policies are missing, or are not.
var asked = []string{"../../fixtures/defaults/*.yaml", fixtures + "/RF107/*.yaml", fixtures + "/RF108/*.yaml"}

func TestThePoliciesFillInWhatTheWebhookDoes(t *testing.T) {
	all := unfilled(t)
	sized := func(t *testing.T) (found []map[string]any) {
		t.Helper()
		for _, f := range all {
			found = append(found, sizes(filled(t, f)))
		}
		return found
	}
	before := sized(t)
	var wanted, got []map[string]any
	t.Run("by the webhook", func(t *testing.T) {
		installMutating(t)
		wanted = sized(t)
	})
	t.Run("by the policies", func(t *testing.T) {
		installDefaults(t)
		got = sized(t)
	})
	changed := 0
	for i, f := range all {
		if !reflect.DeepEqual(got[i], wanted[i]) {
			t.Errorf("%s: the policies make of it %v, the webhook %v", f.name, got[i], wanted[i])
		}
		if !reflect.DeepEqual(wanted[i], before[i]) {
			changed++
		}
	}
	t.Logf("%d fixtures, %d of which are filled in", len(all), changed)
	if changed < 8 {
		t.Errorf("only %d fixtures have anything to fill in", changed)
	}
}

// unfilled are the fixtures that the API server itself lets through, as they are
// written: what is there before them is stored.
func unfilled(t *testing.T) (found []fixture) {
	t.Helper()
	var files []string
	for _, pattern := range asked {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("no fixtures in %s: %v", pattern, err)
		}
		files = append(files, matches...)
	}
	for i, file := range files {
		base := filepath.Base(file)
		if strings.Count(base, ".") > 1 {
			continue // what stands beside a fixture
		}
		object, ok := parse(t, file)
		if !ok {
			t.Fatalf("%s holds no object", file)
		}
		f := fixture{name: base, object: object.Set("metadata.namespace", "default")}
		if old, updated := parse(t, strings.TrimSuffix(file, ".yaml")+".old.yaml"); updated {
			namespace := fmt.Sprintf("filled-%d", i)
			createNamespace(t, namespace)
			if f.old, ok = create(t, old.Set("metadata.namespace", namespace), false); !ok {
				continue
			}
			object.Set("metadata.namespace", namespace).Set("metadata.resourceVersion", f.old.Get("metadata.resourceVersion"))
		}
		if _, err := fill(t, f); err == nil {
			found = append(found, f)
		}
	}
	return found
}

// fill asks the API server what it would store.
func fill(t *testing.T, f fixture) (stored rig.Object, err error) {
	t.Helper()
	method, path := http.MethodPost, collection(f.object)
	if f.old != nil {
		method, path = http.MethodPut, path+"/"+f.object.Name()
	}
	answer, err := l.Request(t.Context(), method, path+"?dryRun=All", f.object.JSON())
	if err == nil {
		err = json.Unmarshal(answer, &stored)
	}
	return stored, err
}

func filled(t *testing.T, f fixture) rig.Object {
	t.Helper()
	stored, err := fill(t, f)
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return stored
}

// sizes are the requests and resize policies of each group's first container.
func sizes(object rig.Object) map[string]any {
	found := map[string]any{}
	spec := rig.ClusterSpecPath(object["kind"].(string))
	groups, _ := object.Get(spec + ".workerGroupSpecs").([]any)
	places := []string{spec + ".headGroupSpec"}
	for i := range groups {
		places = append(places, fmt.Sprintf("%s.workerGroupSpecs[%d]", spec, i))
	}
	for _, place := range places {
		for _, key := range []string{".resources.requests", ".resizePolicy"} {
			path := place + ".template.spec.containers[0]" + key
			if value := object.Get(path); value != nil {
				found[path] = value
			}
		}
	}
	return found
}

// installDefaults applies the policies that fill in, until the test ends.
func installDefaults(t *testing.T) {
	t.Helper()
	var mutating []string
	for _, document := range strings.Split(rayfit(t, "vap", "--defaults"), "\n---\n") {
		if strings.Contains(document, "\nkind: Mutating") {
			mutating = append(mutating, document)
		}
	}
	manifests := strings.Join(mutating, "\n---\n")
	t.Cleanup(func() {
		kubectl(t, manifests, "delete", "--ignore-not-found", "-f", "-")
		filling(t, false)
	})
	kubectl(t, manifests, "apply", "--server-side", "-f", "-")
	filling(t, true)
}

// installMutating registers the webhook that fills in, until the test ends.
func installMutating(t *testing.T) {
	t.Helper()
	configurations, err := (&rig.Rig{Lab: l, Server: server}).Configurations(t.Context(), rig.FailOpen)
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	for _, configuration := range configurations {
		if configuration["kind"] != "MutatingWebhookConfiguration" {
			continue
		}
		if _, err := l.Request(t.Context(), http.MethodPost, path, configuration.JSON()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := l.Request(noDeadline, http.MethodDelete, path+"/"+configuration.Name(), nil); err != nil {
				t.Error(err)
			}
			filling(t, false)
		})
	}
	filling(t, true)
}

// filling waits until requests and resize policies are filled in, or no longer.
func filling(t *testing.T, want bool) {
	t.Helper()
	probe := rig.WithGrowth(rig.RayCluster("default", "probe")).
		Remove("spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests")
	err := lab.Eventually(noDeadline, time.Minute, "what fills in comes and goes", func() error {
		answer, err := l.Request(noDeadline, http.MethodPost, collection(probe)+"?dryRun=All", probe.JSON())
		if err != nil {
			return err
		}
		var stored rig.Object
		if err := json.Unmarshal(answer, &stored); err != nil {
			return err
		}
		container := "spec.workerGroupSpecs[0].template.spec.containers[0]"
		requests, policy := stored.Get(container+".resources.requests") != nil, stored.Get(container+".resizePolicy") != nil
		if requests != want || policy != want {
			return fmt.Errorf("requests are filled in: %t; the resize policy: %t", requests, policy)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
