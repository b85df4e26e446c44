package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
)

// FailurePolicy says what happens to Ray objects while Rayfit does not answer.
type FailurePolicy string

const (
	// FailOpen stores them unjudged, as a plain install does.
	FailOpen FailurePolicy = "open"
	// FailClosed refuses them.
	FailClosed FailurePolicy = "closed"
)

// registration is the API that webhook configurations belong to.
const registration = "/apis/admissionregistration.k8s.io/v1/"

// collections maps the kinds of webhook configurations to their path segments.
var collections = map[string]string{
	"MutatingWebhookConfiguration":   "mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}

// Install registers the webhooks and waits until both are in effect. What was
// installed before is taken away first, since nothing would show from when on
// the API server follows a change.
func (r *Rig) Install(ctx context.Context, policy FailurePolicy) error {
	configurations, err := r.Configurations(ctx, policy)
	if err != nil {
		return err
	}
	if err := r.Uninstall(ctx); err != nil {
		return err
	}
	for _, configuration := range configurations {
		if err := r.create(ctx, configuration); err != nil {
			return err
		}
	}
	return r.wait(ctx, "wait until the webhooks are in effect", true)
}

// Uninstall takes the webhooks away and waits until they have no effect.
func (r *Rig) Uninstall(ctx context.Context) error {
	configurations, err := r.Configurations(ctx, FailOpen)
	if err != nil {
		return err
	}
	for _, configuration := range configurations {
		path := registration + collections[configuration["kind"].(string)] + "/" + configuration.Get("metadata.name").(string)
		_, err := r.Lab.Request(ctx, http.MethodDelete, path, nil)
		if status := new(lab.StatusError); err != nil && !(errors.As(err, &status) && status.Code == http.StatusNotFound) {
			return fmt.Errorf("take away a webhook configuration: %w", err)
		}
	}
	return r.wait(ctx, "wait until the webhooks have no effect", false)
}

// Configurations are the webhook configurations that `rayfit manifests` prints,
// with the server's address in place of the Service's.
func (r *Rig) Configurations(ctx context.Context, policy FailurePolicy) ([]Object, error) {
	rendered, err := r.manifests(ctx, policy)
	if err != nil {
		return nil, err
	}
	authority, err := r.Lab.CA()
	if err != nil {
		return nil, err
	}
	var found []Object
	for _, document := range strings.Split(rendered, "\n---\n") {
		var object Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("read what rayfit manifests prints: %w", err)
		}
		if kind, _ := object["kind"].(string); collections[kind] == "" {
			continue
		}
		for _, webhook := range object.Get("webhooks").([]any) {
			webhook := Object(webhook.(map[string]any))
			path := webhook.Get("clientConfig.service.path").(string)
			webhook["clientConfig"] = map[string]any{"url": r.Server.URL(path), "caBundle": authority}
		}
		found = append(found, object)
	}
	if len(found) != len(collections) {
		return nil, fmt.Errorf("rayfit manifests prints %d webhook configurations instead of %d", len(found), len(collections))
	}
	return found, nil
}

func (r *Rig) manifests(ctx context.Context, policy FailurePolicy) (string, error) {
	args := append([]string{"manifests"}, r.Flags...)
	if policy == FailClosed {
		args = append(args, "--fail-closed")
	}
	return Output(ctx, args...)
}

func (r *Rig) create(ctx context.Context, configuration Object) error {
	path := registration + collections[configuration["kind"].(string)]
	if _, err := r.Lab.Request(ctx, http.MethodPost, path, configuration.JSON()); err != nil {
		return fmt.Errorf("create %s: %w", configuration["kind"], err)
	}
	return nil
}

// wait polls dry runs of a bad object and of one with defaults to come.
func (r *Rig) wait(ctx context.Context, what string, inEffect bool) error {
	return lab.Eventually(ctx, timeout, what, func() error {
		denied, err := r.denies(ctx)
		if err != nil {
			return err
		}
		defaulted, err := r.defaults(ctx)
		if err != nil {
			return err
		}
		if denied != inEffect || defaulted != inEffect {
			return fmt.Errorf("a bad RayCluster is denied: %t; a good one defaulted: %t", denied, defaulted)
		}
		return nil
	})
}

// denies says whether an object that breaks several rules is denied by us.
func (r *Rig) denies(ctx context.Context) (bool, error) {
	bad := RayCluster("default", "probe").
		Set("metadata.annotations[ray.io/ippr]", "not JSON").
		Set("spec.workerGroupSpecs[0].minReplicas", 9)
	_, err := r.dryRun(ctx, bad)
	if err != nil && strings.Contains(err.Error(), `"validate.raycluster.rayfit.dev" denied`) {
		return true, nil
	}
	return false, err
}

// defaults says whether an object with autoscaling gets its defaults.
func (r *Rig) defaults(ctx context.Context) (bool, error) {
	stored, err := r.dryRun(ctx, RayCluster("default", "probe"))
	return err == nil && stored.Get("spec.autoscalerOptions.idleTimeoutSeconds") != nil, err
}

func (r *Rig) dryRun(ctx context.Context, object Object) (Object, error) {
	path := "/apis/ray.io/v1/namespaces/default/rayclusters?dryRun=All"
	raw, err := r.Lab.Request(ctx, http.MethodPost, path, object.JSON())
	if err != nil {
		return nil, fmt.Errorf("dry run of a RayCluster: %w", err)
	}
	var stored Object
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("read the answer to a dry run: %w", err)
	}
	return stored, nil
}
