package rig

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Object is a Kubernetes object.
//
// Its fields are named by paths such as `spec.workerGroupSpecs[0].groupName` and
// `metadata.annotations[ray.io/ippr]`. A path that is misspelt is a mistake in
// the test, and panics.
type Object map[string]any

// Get is the value at a path, nil if there is none.
func (o Object) Get(path string) any {
	var at any = map[string]any(o)
	for _, step := range steps(path) {
		switch value := at.(type) {
		case map[string]any:
			at = value[step]
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(value) {
				return nil
			}
			at = value[index]
		default:
			return nil
		}
	}
	return at
}

// Set writes a value, making the maps on its way; a list grows by one if the
// path names the place after its last item. It returns the object itself.
func (o Object) Set(path string, value any) Object {
	set(map[string]any(o), steps(path), plain(value))
	return o
}

// Remove takes a key out of its map, and returns the object itself.
func (o Object) Remove(path string) Object {
	all := steps(path)
	parent := o.Get(join(all[:len(all)-1]))
	holder, ok := parent.(map[string]any)
	if !ok {
		panic(fmt.Sprintf("nothing to remove at %s", path))
	}
	delete(holder, all[len(all)-1])
	return o
}

// Clone is a copy that shares nothing.
func (o Object) Clone() Object { return plain(o).(map[string]any) }

// Name is the object's name.
func (o Object) Name() string { return fmt.Sprint(o.Get("metadata.name")) }

// JSON is the object as JSON.
func (o Object) JSON() []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return raw
}

// YAML is the object as YAML.
func (o Object) YAML() string {
	raw, err := yaml.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// set returns the changed node, since a list that grows is another one.
func set(node any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	key, rest := path[0], path[1:]
	switch holder := node.(type) {
	case nil:
		return map[string]any{key: set(nil, rest, value)}
	case map[string]any:
		holder[key] = set(holder[key], rest, value)
		return holder
	case []any:
		index, err := strconv.Atoi(key)
		if err != nil || index < 0 || index > len(holder) {
			panic(fmt.Sprintf("no item %s in a list of %d", key, len(holder)))
		}
		if index == len(holder) {
			holder = append(holder, nil)
		}
		holder[index] = set(holder[index], rest, value)
		return holder
	}
	panic(fmt.Sprintf("%T has no field %s", node, key))
}

// plain brings a value to the types that decoded JSON has.
func plain(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

func steps(path string) []string {
	var out []string
	for path != "" {
		var step string
		if path[0] == '[' {
			step, path, _ = strings.Cut(path[1:], "]")
		} else {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			step, path = path[:end], path[end:]
		}
		path = strings.TrimPrefix(path, ".")
		out = append(out, step)
	}
	return out
}

func join(steps []string) string { return "[" + strings.Join(steps, "][") + "]" }
