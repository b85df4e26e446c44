package vap_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// verdict is what became of each rule's findings: denied, warned or audited.
type verdict map[string]string

// modeOf maps the keys of the webhook's audit annotations to modes.
var modeOf = map[string]string{"denied": "enforce", "warned": "warn", "audited": "audit"}

// judge asks the webhook itself, so that the verdict holds what no user sees, too.
func judge(t *testing.T, client *http.Client, object, old rig.Object) verdict {
	t.Helper()
	kind := object["kind"].(string)
	request := map[string]any{
		"uid": "a", "operation": "CREATE", "namespace": object.Get("metadata.namespace"), "name": object.Name(),
		"kind":     map[string]any{"group": "ray.io", "version": "v1", "kind": kind},
		"resource": map[string]any{"group": "ray.io", "version": "v1", "resource": plural(kind)},
		"userInfo": map[string]any{"username": "lab-admin"},
		"object":   object, "oldObject": nil,
	}
	if old != nil {
		request["operation"], request["oldObject"] = "UPDATE", old
	}
	review, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post(server.URL("/validate"), "application/json", bytes.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Response struct{ AuditAnnotations map[string]string }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	found := verdict{}
	for key, rules := range answer.Response.AuditAnnotations {
		for _, rule := range strings.Split(rules, ",") {
			found[rule+" "+modeOf[key]] = rules
		}
	}
	return found
}

// webhookClient trusts the lab's authority.
func webhookClient(t *testing.T) *http.Client {
	t.Helper()
	authority, err := l.CA()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("the lab's authority is no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}}
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }
