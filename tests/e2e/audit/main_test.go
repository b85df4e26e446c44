// Package audit_test looks at what the background audit costs where there are
// many Ray objects: time, memory, and requests to the API server.
package audit_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// auditor is whom the audit log knows the process under test by.
const auditor = "rayfit-under-test"

// startLab starts an API server that ends with its test.
func startLab(t *testing.T) *lab.Lab {
	t.Helper()
	l := labtest.Start(t, lab.Options{
		AdmissionOnly: true, Audit: lab.AuditMetadata,
		// Writing is not what is measured.
		APIServerArgs: []string{"--max-requests-inflight=2000", "--max-mutating-requests-inflight=2000"},
	})
	definitions, err := rig.Output(t.Context(), "crd")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, l, definitions)
	apply(t, l, rig.OpenReports)
	apply(t, l, "{apiVersion: v1, kind: Namespace, metadata: {name: rayfit-system}}")
	return l
}

func apply(t *testing.T, l *lab.Lab, manifest string) {
	t.Helper()
	if _, _, err := l.Apply(manifest); err != nil {
		t.Fatal(err)
	}
}

// serve starts the process that audits.
func serve(t *testing.T, l *lab.Lab, args ...string) *rig.Server {
	t.Helper()
	kubeconfig, err := l.KubeconfigFor(auditor, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig=" + kubeconfig, "--replica=one", "--log=info"}, args...)
	server, err := rig.Serve(t.Context(), l, args...)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// teams are the namespaces of the objects.
const teams = 20

// write creates Ray objects, of all kinds and in all namespaces, with several
// clients at a time. Every fifth breaks RF201, which denies by itself.
func write(t *testing.T, l *lab.Lab, count int) {
	t.Helper()
	for i := range teams {
		apply(t, l, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: team-%d}}", i))
	}
	next := make(chan int)
	failed := make(chan error, count)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for i := range next {
				object := numbered(i)
				path := fmt.Sprintf("/apis/ray.io/v1/namespaces/%s/%ss", object.Get("metadata.namespace"), strings.ToLower(fmt.Sprint(object["kind"])))
				if _, err := l.Request(context.Background(), http.MethodPost, path, object.JSON()); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	writers.Wait()
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
}

// faulty says whether the object of a number breaks RF201.
func faulty(i int) bool { return i%5 == 0 }

// numbered is an object about as large as people's are: three groups with an
// environment and a volume each.
func numbered(i int) rig.Object {
	make := []func(namespace, name string) rig.Object{rig.RayCluster, rig.RayCluster, rig.RayCluster, rig.RayCluster, rig.RayCluster, rig.RayCluster, rig.RayJob, rig.RayJob, rig.RayService, rig.RayCronJob}[i%10]
	object := make(fmt.Sprintf("team-%d", i%teams), fmt.Sprintf("object-%d", i))
	spec := rig.ClusterSpecPath(fmt.Sprint(object["kind"]))
	var groups []any
	for g := range 3 {
		group := rig.Object(rig.WorkerGroup(fmt.Sprintf("group-%d", g))).Clone()
		var variables []any
		for v := range 10 {
			variables = append(variables, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", v), "value": "a value of some length, as paths and addresses are"})
		}
		group.Set("template.spec.containers[0].env", variables).
			Set("template.spec.containers[0].volumeMounts", []any{map[string]any{"name": "data", "mountPath": "/data"}}).
			Set("template.spec.volumes", []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}})
		if g == 0 && faulty(i) {
			group.Set("minReplicas", 9).Set("maxReplicas", 3)
		}
		groups = append(groups, group)
	}
	return object.Set(spec+".workerGroupSpecs", groups)
}
