package kuberay_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// collections maps the kinds that Rayfit judges to their path segments.
var collections = map[string]string{
	"RayCluster": "rayclusters",
	"RayJob":     "rayjobs",
	"RayService": "rayservices",
	"RayCronJob": "raycronjobs",
}

// manifest is a Ray object and the file that it is from.
type manifest struct {
	file   string
	object rig.Object
}

// longestNamespace is how long a namespace's name may be.
const longestNamespace = 63

// namespace is one of the manifest's own: many files use the same names.
func (m manifest) namespace() string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(m.file), "-")
	name = strings.TrimSuffix(name, "-yaml")
	return strings.Trim(name[max(0, len(name)-longestNamespace):], "-")
}

// sampleFolder is where KubeRay keeps its samples.
func sampleFolder(t *testing.T) string {
	t.Helper()
	module, err := lab.Module(t.Context(), lab.KubeRayModule)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(module, "config", "samples")
}

// rayObjects reads the Ray objects of every YAML file below a folder that keep
// allows; other kinds are passed over.
func rayObjects(t *testing.T, folder string, keep func(file string) bool) []manifest {
	t.Helper()
	var found []manifest
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := filepath.Rel(folder, path)
		if err != nil || !keep(file) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, object := range documents(content) {
			found = append(found, manifest{file, object})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func everyFile(string) bool { return true }

// documents are the Ray objects of a YAML stream. A document that is not YAML
// cannot be one: the count of the samples would show that it was.
func documents(stream []byte) []rig.Object {
	var found []rig.Object
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(stream), -1) {
		var object rig.Object
		if yaml.Unmarshal([]byte(document), &object) != nil {
			continue
		}
		kind, _ := object["kind"].(string)
		if version, _ := object["apiVersion"].(string); strings.HasPrefix(version, "ray.io/") && collections[kind] != "" {
			found = append(found, object)
		}
	}
	return found
}

// create creates an object in a namespace; options go into the URL's query.
func create(t *testing.T, l *lab.Lab, namespace string, object rig.Object, options string) (rig.Object, error) {
	t.Helper()
	object = object.Clone().Set("metadata.namespace", namespace)
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s?%s", object["apiVersion"], namespace, collections[object["kind"].(string)], options)
	raw, err := l.Request(t.Context(), "POST", path, object.JSON())
	if err != nil {
		return nil, err
	}
	var stored rig.Object
	return stored, json.Unmarshal(raw, &stored)
}

// list is every object of a collection in all namespaces, with its kind.
func list(t *testing.T, l *lab.Lab, collection string) []rig.Object {
	t.Helper()
	group := "/api/v1/"
	if strings.HasPrefix(collection, "ray") {
		group = "/apis/ray.io/v1/"
	} else if collection == "jobs" {
		group = "/apis/batch/v1/"
	}
	raw, err := l.Request(t.Context(), "GET", group+collection, nil)
	if err != nil {
		t.Fatal(err)
	}
	var objects struct{ Items []rig.Object }
	if err := json.Unmarshal(raw, &objects); err != nil {
		t.Fatal(err)
	}
	return objects.Items
}

// text is the value at a path as text, empty if there is none.
func text(object rig.Object, path string) string {
	if value := object.Get(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}

// within says whether a text contains one of the parts.
func within(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
