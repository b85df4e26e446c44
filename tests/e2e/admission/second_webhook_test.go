package admission_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// change is what a webhook adds or replaces of an object, by JSON pointer.
type change func(object rig.Object) map[string]any

// addGrowth lets the group "cpu" grow in place.
func addGrowth(object rig.Object) map[string]any {
	annotations, _ := object.Get("metadata.annotations").(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations["ray.io/ippr"] = rig.WithGrowth(rig.Object{}).Get("metadata.annotations[ray.io/ippr]")
	return map[string]any{"/metadata/annotations": annotations}
}

// answer is what a mutating webhook says that makes a change.
func (c change) answer(w http.ResponseWriter, request *http.Request) {
	var review struct {
		Request struct {
			UID    string
			Object rig.Object
		}
	}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch := []any{}
	for path, value := range c(review.Request.Object) {
		patch = append(patch, map[string]any{"op": "add", "path": path, "value": value})
	}
	raw, _ := json.Marshal(patch)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": true, "patchType": "JSONPatch",
			"patch": base64.StdEncoding.EncodeToString(raw),
		},
	})
}

// serve serves a webhook on loopback until the test ends.
func (c change) serve(t *testing.T) (url string) {
	t.Helper()
	certificate, key, err := shared.Lab.ServingCertificate(nil, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// asWebhook registers a webhook of somebody else for new clusters with some
// labels. The API server asks in the order of names.
func (c change) asWebhook(t *testing.T, name string, selector map[string]any) {
	t.Helper()
	authority, err := shared.Lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	configuration := rig.Object{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "MutatingWebhookConfiguration",
		"metadata":   map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name":                    "another.example.com",
			"clientConfig":            map[string]any{"url": c.serve(t), "caBundle": authority},
			"objectSelector":          selector,
			"sideEffects":             "None",
			"admissionReviewVersions": []string{"v1"},
			"rules": []any{map[string]any{
				"apiGroups": []string{"ray.io"}, "apiVersions": []string{"v1"},
				"resources": []string{"rayclusters"}, "operations": []string{"CREATE"},
			}},
		}},
	}
	if _, said, err := run(t, configuration, "create"); err != nil {
		t.Fatal(err, said)
	}
	t.Cleanup(func() {
		if _, _, err := shared.Lab.Kubectl("delete", "mutatingwebhookconfiguration", name); err != nil {
			t.Error(err)
		}
	})
}

// growthAfterUs lets clusters with the label grow=please grow in place, after
// Rayfit was asked.
func growthAfterUs(t *testing.T) {
	t.Helper()
	change(addGrowth).asWebhook(t, "zz-after-rayfit", map[string]any{"matchLabels": map[string]any{"grow": "please"}})
}

func TestWhatAnotherWebhookAddsAfterUsIsDefaultedInASecondRound(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "a").Set("metadata.labels.grow", "please")
	growthAfterUs(t)
	labtest.Eventually(t, timeout, "wait until the second webhook is in effect", func() error {
		stdout, said, err := run(t, cluster, "create", "--dry-run=server", "-o", "json")
		if err == nil && !strings.Contains(stdout, "max-cpu") {
			err = errors.New("nothing is added: " + said)
		}
		return err
	})

	accepted(t, cluster)
	hasDefaults(t, stored(t, cluster))
}

func TestWhatAnotherWebhookBreaksAfterUsIsDenied(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "a").
		Set("metadata.labels.grow", "please").
		Set("spec.workerGroupSpecs[0].rayStartParams.num-cpus", "1")
	growthAfterUs(t)
	labtest.Eventually(t, timeout, "wait until the second webhook is in effect", func() error {
		stdout, said, err := run(t, cluster, "create", "--dry-run=server")
		if err == nil {
			return errors.New("it is accepted: " + stdout)
		}
		if !strings.Contains(said, "rayfit explain RF105") {
			return errors.New("it is denied, but not for RF105: " + said)
		}
		return nil
	})
}
