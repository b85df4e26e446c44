package rayservice_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

//go:embed answers.py
var application string

// The application has two replicas of one CPU, and three under load; a worker has one CPU.
const (
	fewest = 2
	most   = 3
)

// create makes the RayService in its version "old".
func (s scene) create(t *testing.T, mode scaling.Mode) {
	t.Helper()
	files := rig.Object{}.Set("apiVersion", "v1").Set("kind", "ConfigMap").Set("metadata.name", s.name).
		Set("data", map[string]any{"answers.py": application})
	if _, err := s.Lab.Request(t.Context(), http.MethodPost, "/api/v1/namespaces/"+s.Namespace+"/configmaps", files.JSON()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lab.Request(t.Context(), http.MethodPost, s.path(), s.object(mode, "old").JSON()); err != nil {
		t.Fatal(err)
	}
	s.remind(t)
}

// remind makes the operator look at the RayService every few seconds. It gives Ray's
// dashboard two seconds for an answer, which a busy machine exceeds, and after several of
// such failures looks again only after minutes, or when the object changes.
func (s scene) remind(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticks := time.NewTicker(5 * time.Second)
		defer ticks.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				// One that fails is made good by the next.
				patch := rig.Object{}.Set("metadata.annotations.reminder", strconv.Itoa(n))
				_, _ = s.Lab.Request(ctx, http.MethodPatch, s.path()+"/"+s.name, patch.JSON())
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// change gives the RayService's clusters another version.
func (s scene) change(t *testing.T, mode scaling.Mode, version string) {
	t.Helper()
	patch := rig.Object{}.Set("spec.rayClusterConfig", s.object(mode, version).Get("spec.rayClusterConfig"))
	if _, err := s.Lab.Request(t.Context(), http.MethodPatch, s.path()+"/"+s.name, patch.JSON()); err != nil {
		t.Fatal(err)
	}
}

func (s scene) path() string { return "/apis/ray.io/v1/namespaces/" + s.Namespace + "/rayservices" }

// object is the RayService, whose pods have a version. A cluster that is not needed any more
// stays for longer than the test takes: its workers go only if they are scaled in.
func (s scene) object(mode scaling.Mode, version string) rig.Object {
	environment := map[string]string{
		"PYTHONPATH": "/application",
		// Replicas tell Serve's controller of their load, not the clients' handle: by the
		// handle's reports Serve often does not grow within a minute, whoever scales.
		"RAY_SERVE_COLLECT_AUTOSCALING_METRICS_ON_HANDLE": "0",
		// What Serve gives up is made for machines that are not busy.
		"RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "1",
		"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S":      "100",
		"RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S":     "100",
		// For how long a proxy goes on answering on a node without replicas.
		"RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S": "15",
	}
	const pod, container = "template.spec.", "template.spec.containers[0]."
	files := map[string]any{
		pod + "volumes":            []any{map[string]any{"name": "application", "configMap": map[string]any{"name": s.name}}},
		container + "volumeMounts": []any{map[string]any{"name": "application", "mountPath": "/application"}},
	}
	more := map[string]any{
		// A proxy that is draining says no, and gets no further requests.
		container + "readinessProbe": map[string]any{
			"httpGet": map[string]any{"path": "/-/healthz", "port": 8000}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 3,
		},
	}
	maps.Copy(more, files)
	cluster := scaling.Cluster{
		Name: s.name, Namespace: s.Namespace, Mode: mode, Port: scaling.RayPort, Idle: 5,
		Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: most, Env: of(environment, version), More: more}},
	}.Object()
	var variables []any
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		variables = append(variables, map[string]any{"name": name, "value": environment[name]})
	}
	const head = "spec.headGroupSpec."
	cluster.Set(head+container+"env", variables).
		Set(head+"rayStartParams.include-dashboard", "true").
		Set(head+"rayStartParams.dashboard-host", "0.0.0.0")
	for path, value := range files {
		cluster.Set(head+path, value)
	}
	return rig.RayService(s.Namespace, s.name).
		Set("metadata.annotations", cluster.Get("metadata.annotations")).
		Set("spec.rayClusterConfig", cluster.Get("spec")).
		Set("spec.rayClusterDeletionDelaySeconds", 3600).
		Set("spec.serveConfigV2", "applications: [{name: answers, import_path: 'answers:app', route_prefix: /}]").
		Set("spec.upgradeStrategy", map[string]any{
			"type": "NewClusterWithIncrementalUpgrade",
			"clusterUpgradeOptions": map[string]any{
				"gatewayClassName": "lab", "maxSurgePercent": 50, "stepSizePercent": 25, "intervalSeconds": 2,
			},
		})
}

// of is the environment of a version's workers.
func of(environment map[string]string, version string) map[string]string {
	workers := maps.Clone(environment)
	workers["VERSION"] = version
	return workers
}

// service is the RayService as it is stored.
func (s scene) service(t *testing.T) rig.Object {
	t.Helper()
	answer, err := s.Lab.Request(t.Context(), http.MethodGet, s.path()+"/"+s.name, nil)
	if err != nil {
		t.Fatal(err)
	}
	var service rig.Object
	if err := json.Unmarshal(answer, &service); err != nil {
		t.Fatal(err)
	}
	return service
}

// condition is nil if a condition of the RayService has the status.
func (s scene) condition(t *testing.T, kind, want string) error {
	t.Helper()
	conditions, _ := s.service(t).Get("status.conditions").([]any)
	for _, condition := range conditions {
		condition, _ := condition.(map[string]any)
		if condition["type"] == kind && condition["status"] == want {
			return nil
		}
	}
	return fmt.Errorf("%s is not %s among the conditions %v", kind, want, conditions)
}

// cluster is the RayCluster that the RayService uses.
func (s scene) cluster(t *testing.T) scaling.Cluster {
	t.Helper()
	name, _ := s.service(t).Get("status.activeServiceStatus.rayClusterName").(string)
	return scaling.Cluster{Name: name, Namespace: s.Namespace}
}
