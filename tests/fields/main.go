// Command fields writes the tables of the fields of KubeRay's CRDs, one file for each version of KubeRay:
//
//	fields FOLDER [VERSION=CRDS..]
//
// The CRDs are those in the Go module of the operator, or those in the folder CRDS, for a version whose module
// is not to be had. A version of which there is neither keeps its file. A table has names, types, enums and which
// fields are required; crates/core/src/schema/table.rs says how it is written.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

const module = "github.com/ray-project/kuberay/ray-operator"

// The last patch of each version that Rayfit works with.
var versions = []string{"1.4.2", "1.5.1", "1.6.2", "1.7.0"}

// A schema, with the parts of it that say what the API server refuses or prunes.
type schema struct {
	Type                 string
	Format               string
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties *schema
	Required             []string
	Enum                 []string
	Minimum              *int
	Default              any
	IntOrString          bool `json:"x-kubernetes-int-or-string"`
	PreserveUnknown      bool `json:"x-kubernetes-preserve-unknown-fields"`
}

type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema schema
			}
		}
	}
}

// A table under construction: each different type has one line.
type table struct {
	lines   []string
	numbers map[string]int
}

func (t *table) line(text string) string {
	number, known := t.numbers[text]
	if !known {
		number = len(t.lines)
		t.numbers[text] = number
		t.lines = append(t.lines, text)
	}
	return strconv.Itoa(number)
}

// add gives the number of the line of a type.
func (t *table) add(s schema) string {
	switch {
	case s.IntOrString:
		return t.line("quantity")
	case s.PreserveUnknown || s.Type == "":
		return t.line("any")
	case s.Type == "array":
		return t.line("list " + t.add(*s.Items))
	case s.AdditionalProperties != nil:
		return t.line("map " + t.add(*s.AdditionalProperties))
	case s.Type == "object":
		words := []string{"object"}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			field := s.Properties[name]
			word := name + "=" + t.add(field)
			if slices.Contains(s.Required, name) && field.Default == nil {
				word += "!"
			}
			words = append(words, word)
		}
		return t.line(strings.Join(words, " "))
	}
	word := s.Type
	if s.Format == "int32" {
		word = s.Format
	}
	if s.Minimum != nil {
		return t.line(fmt.Sprintf("%s %d", word, *s.Minimum))
	}
	return t.line(strings.Join(append([]string{word}, s.Enum...), " "))
}

func write(folder, crds string) (string, error) {
	files, err := filepath.Glob(filepath.Join(crds, "ray.io_*.yaml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no CRDs in %s: %w", crds, err)
	}
	t := table{numbers: map[string]int{}}
	var roots []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var crd definition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			// The API server reads the metadata by its own types, and ignores a status that a manifest has.
			root.Properties["metadata"], root.Properties["status"] = schema{}, schema{}
			roots = append(roots, fmt.Sprintf("kind %s/%s %s", crd.Spec.Names.Kind, version.Name, t.add(root)))
		}
	}
	return strings.Join(append(t.lines, roots...), "\n") + "\n", nil
}

func downloaded(version string) (string, error) {
	raw, err := exec.Command("go", "mod", "download", "-json", module+"@v"+version).Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(raw, &found) != nil || found.Dir == "" {
		return "", fmt.Errorf("%s %s: %s %w", module, version, found.Error, err)
	}
	return filepath.Join(found.Dir, "config", "crd", "bases"), nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: fields FOLDER [VERSION=CRDS..]")
	}
	given := map[string]string{}
	for _, argument := range os.Args[2:] {
		version, folder, _ := strings.Cut(argument, "=")
		given[version] = folder
	}
	for _, version := range versions {
		file := filepath.Join(os.Args[1], "kuberay-"+version[:strings.LastIndex(version, ".")]+".txt")
		crds, err := given[version], error(nil)
		if crds == "" {
			crds, err = downloaded(version)
		}
		if err != nil {
			log.Printf("%s stays as it is: %v", file, err)
			continue
		}
		text, err := write(os.Args[1], crds)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
