package install

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
)

const repository = "../../.."

// example is a file of the examples, in the namespace of these tests.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(repository + "/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "namespace: research", "namespace: "+team, 1)
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	object, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func goodCluster(t *testing.T) []byte { return toJSON(t, example(t, "good.yaml")) }

// create has the API server make a RayCluster without storing it. That it is
// refused if no webhook judges it needs an install that fails closed; that it
// comes back with defaults shows that the other webhook answered too.
func create(ctx context.Context, l *lab.Lab, object []byte) error {
	answer, err := l.Request(ctx, http.MethodPost, "/apis/ray.io/v1/namespaces/"+team+"/rayclusters?dryRun=All", object)
	if err != nil {
		return err
	}
	if !strings.Contains(string(answer), `"upscalingMode":"Default"`) {
		return errors.New("a RayCluster was not defaulted: the mutating webhook was passed over")
	}
	return nil
}
