package scaling

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"rayfit.dev/rayfit/tests/rig"
)

// Mode is who scales a cluster.
type Mode string

const (
	// Ray is Ray's own autoscaler, in the head pod.
	Ray Mode = "ray"
	// Central is `rayfit serve`.
	Central Mode = "central"
	// Sidecar is Rayfit in the head pod.
	Sidecar Mode = "sidecar"
)

// RayPort is the only one at which Ray's autoscaler looks for its GCS when
// KubeRay starts it.
const RayPort = 6379

// grace is how many seconds a pod has to end; Kubernetes' own 30 are for work
// that is worth something.
const grace = 5

// memory is enough for a worker that only waits.
const memory = "1Gi"

// Cluster is a RayCluster to be scaled. Its head takes no work.
type Cluster struct {
	Name string
	// Namespace is that of the world that it was created in; Namespace if empty.
	Namespace string
	Mode      Mode
	// Port is the GCS's; chosen by Create if zero.
	Port   int
	Groups []Group
	// Idle is how many seconds a worker may be idle.
	Idle int
	// Upscaling is the upscalingMode; Default if empty.
	Upscaling string
	// SidecarUser is the securityContext of the autoscaler container, if any.
	SidecarUser rig.Object
	// Token makes Ray answer only who shows the token that KubeRay makes.
	Token bool
	// MetricsPort is the one of the autoscaler container's metrics; Ray's own if zero.
	MetricsPort int
	// Patience is for how many seconds a worker looks for a head that has gone;
	// Ray's own 60 if zero.
	Patience int
	// Queue is Kueue's LocalQueue that admits the cluster, if any, and Priority its
	// WorkloadPriorityClass.
	Queue, Priority string
	// Redis is the address of the Redis in which the GCS stores what it knows, if any.
	Redis string
	// Unmanned clusters have worker containers in which nothing runs.
	Unmanned bool
}

// Group is a worker group.
type Group struct {
	Name     string
	CPU      int
	Min, Max int
	// Memory of a pod, and up to which it may grow in place, as quantities; both 1Gi
	// if empty.
	Memory, MaxMemory string
	// Hosts is how many pods a replica has; one if zero.
	Hosts int
	// Custom resources of each worker.
	Custom map[string]int
	// MaxCPU is the resize limit up to which its pods may grow in place, 0 for none.
	MaxCPU int
	// Gate is the scheduling gate with which its pods are made, if any.
	Gate string
	// Grace is how many seconds a pod has to end; grace if zero. Where it is set, a
	// container is asked to end as a real one is: its process 1 alone.
	Grace int
	// Drain is how many seconds Ray drains when its pod is deleted; Ray's own 30 if
	// zero.
	Drain int
	// Limited containers have a real cgroup with their memory limit.
	Limited bool
	// Throttled containers have a real cgroup with their CPU limit.
	Throttled bool
	// Env is more of the environment of the Ray container.
	Env map[string]string
	// ResizeTimeout is how many seconds a resize may take; 60 if zero.
	ResizeTimeout int
	// More are further fields of the group, by their paths in it.
	More map[string]any
}

// Object is the RayCluster, as Rayfit's admission would store it.
func (c Cluster) Object() rig.Object {
	object := rig.RayCluster(cmp.Or(c.Namespace, Namespace), c.Name).
		Set("metadata.annotations[rayfit.dev/reconcile]", string(c.Mode)).
		Set("spec.autoscalerOptions", c.autoscaler()).
		Set("spec.headGroupSpec.rayStartParams", c.startParams(map[string]any{
			"num-cpus": "0",
			"port":     strconv.Itoa(c.Port),
			// Nothing here asks it, and it is the slowest part of a head to start.
			"include-dashboard": "false",
		}))
	// Ray's head does not end when it is told to.
	object.Set("spec.headGroupSpec.template.spec.terminationGracePeriodSeconds", grace)
	var groups []any
	for _, g := range c.Groups {
		groups = append(groups, c.group(g))
	}
	object.Set("spec.workerGroupSpecs", groups)
	if growth := c.growth(); growth != "" {
		object.Set("metadata.annotations[ray.io/ippr]", growth)
	}
	if c.Queue != "" {
		object.Set("metadata.labels[kueue.x-k8s.io/queue-name]", c.Queue).
			Set("metadata.annotations[kueue.x-k8s.io/elastic-job]", "true")
	}
	if c.Priority != "" {
		object.Set("metadata.labels[kueue.x-k8s.io/priority-class]", c.Priority)
	}
	if c.Token {
		object.Set("spec.authOptions.mode", "token")
	}
	if c.Redis != "" {
		object.Set("spec.gcsFaultToleranceOptions.redisAddress", c.Redis)
	}
	if c.Unmanned {
		// The operator then leaves all commands to us, and tells the head's.
		object.Set("metadata.annotations[ray.io/overwrite-container-cmd]", "true").
			Set("spec.headGroupSpec.template.spec.containers[0].command", []string{"/bin/bash", "-c", "eval exec ${KUBERAY_GEN_RAY_START_CMD/0.0.0.0/$POD_IP}"})
	}
	return object
}

func (c Cluster) autoscaler() map[string]any {
	options := map[string]any{"version": "v2", "idleTimeoutSeconds": c.Idle, "upscalingMode": "Default"}
	if c.Upscaling != "" {
		options["upscalingMode"] = c.Upscaling
	}
	if c.SidecarUser != nil {
		options["securityContext"] = c.SidecarUser
	}
	if c.MetricsPort != 0 {
		options["env"] = []any{map[string]any{"name": "AUTOSCALER_METRIC_PORT", "value": strconv.Itoa(c.MetricsPort)}}
	}
	if c.Mode != Ray {
		options["image"] = "rayfit:lab"
		options["resources"] = map[string]any{
			"requests": map[string]any{"cpu": "50m", "memory": "64Mi"},
			"limits":   map[string]any{"cpu": "200m", "memory": "64Mi"},
		}
	}
	return options
}

// startParams let many Ray nodes share one machine.
func (c Cluster) startParams(more map[string]any) map[string]any {
	params := map[string]any{
		"node-ip-address":     "$POD_IP",
		"object-store-memory": "100000000",
	}
	maps.Copy(params, more)
	return params
}

func (c Cluster) group(g Group) rig.Object {
	group := rig.Object(rig.WorkerGroup(g.Name)).Clone()
	size := map[string]any{"cpu": strconv.Itoa(g.CPU), "memory": cmp.Or(g.Memory, memory)}
	more := map[string]any{"include-log-monitor": "false"}
	if len(g.Custom) > 0 {
		more["resources"] = customResources(g.Custom)
	}
	const container = "template.spec.containers[0]"
	group.Set("replicas", g.Min).Set("minReplicas", g.Min).Set("maxReplicas", g.Max).
		Set("rayStartParams", c.startParams(more)).
		Set(container+".resources", map[string]any{"requests": size, "limits": size}).
		Set("template.spec.terminationGracePeriodSeconds", cmp.Or(g.Grace, grace))
	if g.Gate != "" {
		group.Set("template.spec.schedulingGates", []any{map[string]any{"name": g.Gate}})
	}
	if g.Hosts > 0 {
		group.Set("numOfHosts", g.Hosts)
	}
	var env []map[string]any
	if c.Patience > 0 {
		env = append(env, map[string]any{"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": strconv.Itoa(c.Patience)})
	}
	if g.Grace > 0 {
		env = append(env, map[string]any{"name": "LAB_STOP_ALONE", "value": "true"})
	}
	if g.Drain > 0 {
		env = append(env, map[string]any{"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": strconv.Itoa(g.Drain)})
	}
	if g.Limited {
		env = append(env, map[string]any{"name": "LAB_MEMORY_CGROUP", "value": "true"})
	}
	if g.Throttled {
		env = append(env, map[string]any{"name": "LAB_CPU_CGROUP", "value": "true"})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Env)) {
		env = append(env, map[string]any{"name": name, "value": g.Env[name]})
	}
	if g.MaxCPU > 0 {
		env = append(env, rig.WorkerStart(g.MaxCPU)...)
		group.Set(container+".resizePolicy", []any{
			map[string]any{"resourceName": "cpu", "restartPolicy": "NotRequired"},
			map[string]any{"resourceName": "memory", "restartPolicy": "NotRequired"},
		})
	}
	if len(env) > 0 {
		group.Set(container+".env", env)
	}
	if c.Unmanned {
		group.Set(container+".command", []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"})
	}
	for _, path := range slices.Sorted(maps.Keys(g.More)) {
		group.Set(path, g.More[path])
	}
	return group
}

func (c Cluster) growth() string {
	groups := map[string]any{}
	for _, g := range c.Groups {
		if g.MaxCPU > 0 {
			timeout := g.ResizeTimeout
			if timeout == 0 {
				timeout = 60
			}
			groups[g.Name] = map[string]any{"max-cpu": strconv.Itoa(g.MaxCPU), "max-memory": cmp.Or(g.MaxMemory, g.Memory, memory), "resize-timeout": timeout}
		}
	}
	if len(groups) == 0 {
		return ""
	}
	raw, err := json.Marshal(map[string]any{"groups": groups})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// customResources is the quoted JSON that KubeRay and Ray take.
func customResources(custom map[string]int) string {
	raw, err := json.Marshal(custom)
	if err != nil {
		panic(err)
	}
	return strconv.Quote(string(raw))
}
