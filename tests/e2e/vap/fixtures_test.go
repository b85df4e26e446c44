package vap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

const fixtures = "../../fixtures/rules"

// judged is where objects are tried that are new.
const judged = "judged"

// fixture is an object of the rules' tests, as the API server would store it.
type fixture struct {
	name string
	rule string
	// Of a near miss the rule has nothing to say.
	bad         bool
	object, old rig.Object
}

// corpus reads every fixture that the API server itself lets through. Objects
// of which there is an earlier form are stored in that form.
func corpus(t *testing.T) (found []fixture, refused int) {
	t.Helper()
	files, err := filepath.Glob(fixtures + "/RF*/*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d fixtures in %s: %v", len(files), fixtures, err)
	}
	for i, file := range files {
		if name := filepath.Base(file); strings.Count(name, ".") > 1 {
			continue // what stands beside a fixture
		}
		f, ok := read(t, file, fmt.Sprintf("%s-%d", judged, i))
		if !ok {
			refused++
			continue
		}
		found = append(found, f)
	}
	return found, refused
}

func read(t *testing.T, file, namespace string) (fixture, bool) {
	t.Helper()
	rule := filepath.Base(filepath.Dir(file))
	f := fixture{name: rule + "/" + filepath.Base(file), rule: rule, bad: strings.HasPrefix(filepath.Base(file), "bad-")}
	object, ok := parse(t, file)
	if !ok {
		return f, false
	}
	old, updated := parse(t, strings.TrimSuffix(file, ".yaml")+".old.yaml")
	if updated {
		createNamespace(t, namespace)
		object.Set("metadata.namespace", namespace)
		old.Set("metadata.namespace", namespace)
		if f.old, ok = create(t, old, false); !ok {
			return f, false
		}
	} else {
		object.Set("metadata.namespace", "default")
	}
	if f.object, ok = create(t, object, true); !ok {
		return f, false
	}
	if !updated {
		f.object.Set("metadata.namespace", judged)
	} else {
		f.object.Set("metadata.resourceVersion", f.old.Get("metadata.resourceVersion")).Set("metadata.uid", f.old.Get("metadata.uid"))
	}
	return f, true
}

// parse reads a file, if it is there and holds an object that can be sent.
func parse(t *testing.T, file string) (rig.Object, bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	var object rig.Object
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	_, ok := object["metadata"].(map[string]any)
	return object, ok
}

// create has the API server make an object; false if it refuses it by itself.
func create(t *testing.T, object rig.Object, dryRun bool) (rig.Object, bool) {
	t.Helper()
	namespace := object.Get("metadata.namespace")
	path := collection(object)
	if dryRun {
		// An object of that name may be there, in an earlier form.
		object = object.Clone().Set("metadata.namespace", "default")
		path = collection(object) + "?dryRun=All"
	}
	answer, err := l.Request(t.Context(), http.MethodPost, path, object.JSON())
	if status := new(lab.StatusError); errors.As(err, &status) && status.Code >= 400 && status.Code < 500 && status.Code != http.StatusConflict {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	var stored rig.Object
	if err := json.Unmarshal(answer, &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Set("metadata.namespace", namespace), true
}

func collection(object rig.Object) string {
	return fmt.Sprintf("/apis/ray.io/v1/namespaces/%s/%s", object.Get("metadata.namespace"), plural(object["kind"].(string)))
}

func createNamespace(t *testing.T, name string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	if _, err := l.Request(t.Context(), http.MethodPost, "/api/v1/namespaces", []byte(body)); err != nil {
		t.Fatal(err)
	}
}
