package kuberay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// rounds is how often the operator must have begun to look at an object after
// an event, so that one look surely began after it and has ended: the first may
// have begun before, and the last may go on.
const rounds = 3

// lookedAgain waits until the operator has reconsidered every Ray object in its
// present state. After errors (no dashboard answers here) it would take its
// time, so an annotation of no meaning calls it.
func lookedAgain(t *testing.T, l *lab.Lab) {
	t.Helper()
	log, err := os.Open(l.LogFile("operator"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	labtest.Eventually(t, patience, "wait until the operator has looked at every object again", func() error {
		content, err := io.ReadAll(io.NewSectionReader(log, begin, 1<<30))
		if err != nil {
			return err
		}
		calls++
		return call(t, l, calls, reconciliations(content))
	})
}

// call calls the operator to the objects that it has not looked at often enough.
func call(t *testing.T, l *lab.Lab, number int, looks map[string][]string) error {
	t.Helper()
	waiting := ""
	for _, collection := range []string{"rayclusters", "rayjobs", "rayservices"} {
		for _, object := range list(t, l, collection) {
			if n := len(looks[place(object)]); n < rounds {
				waiting += fmt.Sprintf(" %s %s (%d)", collection, place(object), n)
				path := fmt.Sprintf("/apis/ray.io/v1/namespaces/%s/%s/%s", text(object, "metadata.namespace"), collection, object.Name())
				body := rig.Object{}.Set("metadata.annotations[example.com/call]", fmt.Sprint(number)).JSON()
				if _, err := l.Request(t.Context(), "PATCH", path, body); err != nil {
					return err
				}
			}
		}
	}
	if waiting != "" {
		return fmt.Errorf("fewer than %d looks at%s", rounds, waiting)
	}
	return nil
}

// reconciliations are the ids of the operator's looks, by place.
func reconciliations(log []byte) map[string][]string {
	looks := map[string][]string{}
	for line := range bytes.Lines(log) {
		var entry struct {
			ReconcileID                    string
			RayCluster, RayJob, RayService struct{ Name, Namespace string }
		}
		if json.Unmarshal(line, &entry) != nil || entry.ReconcileID == "" {
			continue
		}
		for _, of := range []struct{ Name, Namespace string }{entry.RayCluster, entry.RayJob, entry.RayService} {
			key := of.Namespace + "/" + of.Name
			if of.Name != "" && !slices.Contains(looks[key], entry.ReconcileID) {
				looks[key] = append(looks[key], entry.ReconcileID)
			}
		}
	}
	return looks
}

// place is an object's namespace and name.
func place(object rig.Object) string {
	return text(object, "metadata.namespace") + "/" + object.Name()
}

// state is all that an upgrade or a loop would change, a line for each object:
// specs, generations and the operator's hashes of Ray objects, and which pods,
// Services and Jobs there are.
func state(t *testing.T, l *lab.Lab) string {
	t.Helper()
	var lines []string
	for _, collection := range []string{"rayclusters", "rayjobs", "rayservices"} {
		for _, object := range list(t, l, collection) {
			spec, err := json.Marshal(object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s generation %s %s", identity(collection, object), text(object, "metadata.generation"), spec))
		}
	}
	return strings.Join(append(lines, children(t, l)...), "\n")
}

// children are the objects that the operator makes, a line for each.
func children(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	var lines []string
	for _, collection := range []string{"rayclusters", "jobs", "pods", "services"} {
		for _, object := range list(t, l, collection) {
			lines = append(lines, identity(collection, object))
		}
	}
	slices.Sort(lines)
	return lines
}

// identity tells an object from another of the same name, and a pod or cluster
// of one spec from that of another by the operator's hash.
func identity(collection string, object rig.Object) string {
	line := fmt.Sprintf("%s %s %s", collection, place(object), text(object, "metadata.uid"))
	annotations, _ := object.Get("metadata.annotations").(map[string]any)
	for _, name := range []string{"ray.io/hash-without-replicas-and-workers-to-delete", "ray.io/num-worker-groups", "ray.io/upgrade-strategy-recreate-hash"} {
		if value, ok := annotations[name]; ok {
			line += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	return line
}
