package rig

import (
	"slices"
	"strconv"
)

// image is of the newest Ray that the lab has.
const image = "rayproject/ray:2.60.0"

// RayCluster is a cluster with autoscaling that breaks no rule: a head that
// takes no work, and the worker group "cpu" of up to four pods. Defaults are
// still to come.
func RayCluster(namespace, name string) Object {
	return object("RayCluster", namespace, name, clusterSpec())
}

// RayJob is a job on such a cluster.
func RayJob(namespace, name string) Object {
	return object("RayJob", namespace, name, jobSpec())
}

// RayService is a service on such a cluster.
func RayService(namespace, name string) Object {
	return object("RayService", namespace, name, map[string]any{"rayClusterConfig": clusterSpec()})
}

// RayCronJob is such a job, every hour.
func RayCronJob(namespace, name string) Object {
	return object("RayCronJob", namespace, name, map[string]any{
		"schedule":    "0 * * * *",
		"jobTemplate": jobSpec(),
	})
}

// ClusterSpecPath is where an object of a kind holds its cluster's spec.
func ClusterSpecPath(kind string) string {
	return map[string]string{
		"RayCluster": "spec",
		"RayJob":     "spec.rayClusterSpec",
		"RayService": "spec.rayClusterConfig",
		"RayCronJob": "spec.jobTemplate.rayClusterSpec",
	}[kind]
}

// WithGrowth lets the group "cpu" grow in place, up to four times its size, without the memory
// monitor of Ray that would go by the size with which its pods start.
func WithGrowth(cluster Object) Object {
	kind, _ := cluster["kind"].(string)
	at := ClusterSpecPath(kind) + ".workerGroupSpecs[0].template.spec.containers[0].env"
	if env, there := cluster.Get(at).([]any); there {
		cluster.Set(at, append(slices.Clone(env), WithoutMonitor()))
	}
	return cluster.Set("metadata.annotations[ray.io/ippr]",
		`{"groups":{"cpu":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}`)
}

// WithoutMonitor is the variable that turns off Ray's memory monitor, which goes by the memory that a
// pod starts with: RF119 names groups whose memory may grow beside it.
func WithoutMonitor() map[string]any {
	return map[string]any{"name": "RAY_memory_monitor_refresh_ms", "value": "0"}
}

// WorkerStart is the environment that DF09 gives to pods that may grow to so many
// CPUs.
func WorkerStart(cpus int) []map[string]any {
	return []map[string]any{
		{"name": "RAY_worker_maximum_startup_concurrency", "value": strconv.Itoa(cpus)},
		{"name": "RAY_worker_cap_initial_backoff_delay_ms", "value": "10"},
	}
}

// WorkerGroup is a group of up to four pods of one CPU and 2Gi, whose Ray has
// drained before Kubernetes ends them, and that never restart, so that DF10 and DF11
// have nothing to fill in.
func WorkerGroup(name string) map[string]any {
	worker := Object(template("ray-worker")).Set("spec.containers[0].env", []any{
		map[string]any{"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": "20"},
	}).Set("spec.restartPolicy", "Never")
	return map[string]any{
		"groupName":      name,
		"replicas":       1,
		"minReplicas":    0,
		"maxReplicas":    4,
		"rayStartParams": map[string]any{},
		"template":       map[string]any(worker),
	}
}

func object(kind, namespace, name string, spec map[string]any) Object {
	return plain(map[string]any{
		"apiVersion": "ray.io/v1",
		"kind":       kind,
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       spec,
	}).(map[string]any)
}

func jobSpec() map[string]any {
	return map[string]any{"entrypoint": "python -c pass", "rayClusterSpec": clusterSpec()}
}

func clusterSpec() map[string]any {
	return map[string]any{
		"rayVersion":              "2.60.0",
		"enableInTreeAutoscaling": true,
		"headGroupSpec": map[string]any{
			"rayStartParams": map[string]any{"num-cpus": "0"},
			"template":       template("ray-head"),
		},
		"workerGroupSpecs": []any{WorkerGroup("cpu")},
	}
}

func template(container string) map[string]any {
	size := map[string]any{"cpu": "1", "memory": "2Gi"}
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name":      container,
		"image":     image,
		"resources": map[string]any{"requests": size, "limits": size},
	}}}}
}
