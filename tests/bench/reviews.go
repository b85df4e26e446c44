package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"rayfit.dev/rayfit/tests/rig"
)

// review is one AdmissionReview and what it is called in tables.
type review struct {
	name string
	body []byte
	// isApart says that each request opens a connection of its own.
	isApart bool
}

// apart is what the review on connections of its own is called.
const apart = "7 KB create, each on a new connection"

// sizes are the lengths of the bodies, in bytes: a small RayCluster, one of a
// busy team, and about the largest that people write.
var sizes = []struct {
	name  string
	bytes int
}{{"7 KB", 7_000}, {"40 KB", 40_000}, {"700 KB", 700_000}}

// reviews are all that is sent: of each size a create, and an update that
// changes the spec; and last the smallest on new connections.
func reviews() ([]review, error) {
	var all []review
	for _, size := range sizes {
		for _, operation := range []string{"CREATE", "UPDATE"} {
			body, err := reviewOf(operation, size.bytes)
			if err != nil {
				return nil, err
			}
			all = append(all, review{name: size.name + " " + strings.ToLower(operation), body: body})
		}
	}
	return append(all, review{name: apart, body: all[0].body, isApart: true}), nil
}

// reviewOf is a review of about that length: the cluster gets as many worker
// groups as fit, and a description fills what is left.
func reviewOf(operation string, length int) ([]byte, error) {
	encode := func(groups, padding int) ([]byte, error) {
		body, err := json.Marshal(admissionReview(operation, groups, padding))
		if err != nil {
			return nil, fmt.Errorf("encode a review of %d groups: %w", groups, err)
		}
		return body, nil
	}
	one, err := encode(1, 0)
	if err != nil {
		return nil, err
	}
	two, err := encode(2, 0)
	if err != nil {
		return nil, err
	}
	// Later groups have more digits in their names: a hundredth of their length.
	groups := 1 + max(length-len(one), 0)*99/100/(len(two)-len(one))
	body, err := encode(groups, 0)
	if err != nil {
		return nil, err
	}
	missing := max(length-len(body), 0)
	if operation == "UPDATE" {
		missing /= 2 // it is in both objects
	}
	return encode(groups, missing)
}

type object = map[string]any

func admissionReview(operation string, groups, padding int) object {
	request := object{
		"uid":         "705ab4f5-6393-11e8-b7cc-42010a800002",
		"kind":        object{"group": "ray.io", "version": "v1", "kind": "RayCluster"},
		"resource":    object{"group": "ray.io", "version": "v1", "resource": "rayclusters"},
		"requestKind": object{"group": "ray.io", "version": "v1", "kind": "RayCluster"},
		"name":        "bench", "namespace": "research", "operation": operation,
		"userInfo": object{"username": "alice", "groups": []string{"team-a", "system:authenticated"}},
		"object":   rayCluster(groups, padding, 2),
		"dryRun":   false,
		"options":  object{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
	}
	if operation == "UPDATE" {
		request["oldObject"] = rayCluster(groups, padding, 1)
	}
	return object{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
}

// rayCluster is an object as an API server sends it, with what kubectl and the
// server itself add to it. Neither webhook has anything to say against it.
func rayCluster(groups, padding, generation int) object {
	workers := make([]object, groups)
	limits := object{}
	for n := range workers {
		name := fmt.Sprintf("group-%d", n)
		workers[n] = object{
			"groupName": name, "replicas": 1, "minReplicas": 0, "maxReplicas": 10, "numOfHosts": 1,
			"rayStartParams": object{},
			"template":       podTemplate("ray-worker"),
		}
		limits[name] = object{"max-cpu": "8", "max-memory": "32Gi", "resize-timeout": 300}
	}
	workers[0]["maxReplicas"] = 9 + generation
	ippr, _ := json.Marshal(object{"groups": limits}) // of strings and numbers: cannot fail
	return object{
		"apiVersion": "ray.io/v1",
		"kind":       "RayCluster",
		"metadata": object{
			"name": "bench", "namespace": "research", "generation": generation,
			"uid":               "2f9c4b8e-6a55-4c1c-9a0d-3f0f6f4c1c55",
			"creationTimestamp": "2026-01-01T00:00:00Z",
			"labels":            object{"app.kubernetes.io/name": "bench", "team": "a"},
			"annotations": object{
				"ray.io/ippr": string(ippr),
				"description": strings.Repeat("x", padding),
			},
			"managedFields": managedFields(),
		},
		"spec": object{
			"rayVersion":              "2.56.0",
			"enableInTreeAutoscaling": true,
			"autoscalerOptions": object{
				"version": "v2", "idleTimeoutSeconds": 120,
				"resources": object{
					"requests": object{"cpu": "500m", "memory": "1Gi"},
					"limits":   object{"cpu": "500m", "memory": "1Gi"},
				},
			},
			"headGroupSpec": object{
				"serviceType":    "ClusterIP",
				"rayStartParams": object{"num-cpus": "0", "dashboard-host": "0.0.0.0"},
				"template":       podTemplate("ray-head"),
			},
			"workerGroupSpecs": workers,
		},
	}
}

// podTemplate is of about 1.2 KB, as teams' templates are: environment,
// volumes, where to run.
func podTemplate(container string) object {
	size := object{"cpu": "2", "memory": "8Gi"}
	env := []object{{"name": "TOKEN", "valueFrom": object{"secretKeyRef": object{"name": "tokens", "key": "hub"}}}}
	if container == "ray-worker" {
		env = append(env, rig.WorkerStart(8)...)
		env = append(env, rig.WithoutMonitor())
	} else {
		env = append(env, object{"name": "OMP_NUM_THREADS", "value": "8"})
	}
	return object{
		"metadata": object{"labels": object{"team": "a"}, "annotations": object{"prometheus.io/scrape": "true"}},
		"spec": object{
			"serviceAccountName": "ray",
			"nodeSelector":       object{"node.kubernetes.io/instance-type": "m7i.4xlarge"},
			"tolerations":        []object{{"key": "dedicated", "operator": "Equal", "value": "ray", "effect": "NoSchedule"}},
			"volumes": []object{
				{"name": "shm", "emptyDir": object{"medium": "Memory", "sizeLimit": "2Gi"}},
				{"name": "data", "persistentVolumeClaim": object{"claimName": "datasets", "readOnly": true}},
			},
			"containers": []object{{
				"name": container, "image": "rayproject/ray:2.56.0", "imagePullPolicy": "IfNotPresent",
				"env":       env,
				"resources": object{"requests": size, "limits": size},
				"resizePolicy": []object{
					{"resourceName": "cpu", "restartPolicy": "NotRequired"},
					{"resourceName": "memory", "restartPolicy": "NotRequired"},
				},
				"volumeMounts": []object{
					{"name": "shm", "mountPath": "/dev/shm"},
					{"name": "data", "mountPath": "/data", "readOnly": true},
				},
			}},
		},
	}
}

// managedFields are what the API server keeps of who wrote what. It does not
// look into the lists of a custom resource, so they do not grow with the groups.
func managedFields() []object {
	owned := object{}
	for _, key := range []string{"autoscalerOptions", "enableInTreeAutoscaling", "headGroupSpec", "rayVersion", "workerGroupSpecs"} {
		owned["f:"+key] = object{}
	}
	return []object{{
		"manager": "kubectl", "operation": "Apply", "apiVersion": "ray.io/v1", "time": "2026-01-01T00:00:00Z",
		"fieldsType": "FieldsV1",
		"fieldsV1":   object{"f:metadata": object{"f:annotations": object{"f:ray.io/ippr": object{}}}, "f:spec": owned},
	}}
}
