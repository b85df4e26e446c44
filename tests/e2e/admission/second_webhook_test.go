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

	"rayfit.dev/rayfit/tests/rig"
)

// addGrowth is a mutating webhook of somebody else: it lets the group "cpu" of
// clusters with the label grow=please grow in place.
func addGrowth(w http.ResponseWriter, request *http.Request) {
	var review struct {
		Request struct {
			UID    string `json:"uid"`
			Object struct {
				Metadata struct{ Annotations map[string]string }
			}
		} `json:"request"`
	}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	annotations := review.Request.Object.Metadata.Annotations
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["ray.io/ippr"] = rig.WithGrowth(rig.Object{}).Get("metadata.annotations[ray.io/ippr]").(string)
	patch := []any{map[string]any{"op": "add", "path": "/metadata/annotations", "value": annotations}}
	raw, _ := json.Marshal(patch)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": true, "patchType": "JSONPatch",
			"patch": base64.StdEncoding.EncodeToString(raw),
		},
	})
}

// serveSecond serves addGrowth on loopback until the test ends.
func serveSecond(t *testing.T) (url string) {
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
	server := httptest.NewUnstartedServer(http.HandlerFunc(addGrowth))
	server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// registerSecond registers a webhook that the API server asks after Rayfit's.
func registerSecond(t *testing.T, url string) {
	t.Helper()
	authority, err := shared.Lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	configuration := rig.Object{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "MutatingWebhookConfiguration",
		"metadata":   map[string]any{"name": "zz-after-rayfit"},
		"webhooks": []any{map[string]any{
			"name":                    "growth.example.com",
			"clientConfig":            map[string]any{"url": url, "caBundle": authority},
			"objectSelector":          map[string]any{"matchLabels": map[string]any{"grow": "please"}},
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
		if _, _, err := shared.Lab.Kubectl("delete", "mutatingwebhookconfiguration", "zz-after-rayfit"); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAnotherWebhookAddsAfterUsIsDefaultedInASecondRound(t *testing.T) {
	cluster := rig.RayCluster(namespace(t), "a").Set("metadata.labels.grow", "please")
	registerSecond(t, serveSecond(t))
	eventually(t, "wait until the second webhook is in effect", func() error {
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
	registerSecond(t, serveSecond(t))
	eventually(t, "wait until the second webhook is in effect", func() error {
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
