package scaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
)

// WrittenClusters are many RayClusters, or large ones, of which every object is written
// straight into the API server: no operator makes the pods and no kubelet runs
// them, and their GCS is played. It shows what many clusters cost who watches
// them, on a machine that could not run them.
type WrittenClusters struct {
	Lab      *lab.Lab
	GCS      *playgcs.Server
	Clusters []Cluster
	Workers  int // of each cluster

	uids []string
}

// writers is how many requests are under way at once.
const writers = 16

// writtenNodes is how many Nodes the pods are spread over.
const writtenNodes = 100

// WriteClusters writes the objects of clusters of a head and some workers each,
// all of them running and idle. Workers have one CPU, and may grow in place up to maxCPU
// if that is not 0. They are spread over the namespaces, or all in Namespace.
func WriteClusters(ctx context.Context, l *lab.Lab, gcs *playgcs.Server, clusters, workers, maxCPU int, namespaces ...string) (*WrittenClusters, error) {
	if len(namespaces) == 0 {
		namespaces = []string{Namespace}
	}
	port, err := lab.HoldPort()
	if err != nil {
		return nil, err
	}
	h := &WrittenClusters{Lab: l, GCS: gcs, Workers: workers, uids: make([]string, clusters)}
	for i := range clusters {
		h.Clusters = append(h.Clusters, Cluster{
			Name: fmt.Sprintf("written-%04d", i), Namespace: namespaces[i%len(namespaces)], Mode: Central, Port: port, Idle: 3600,
			Groups: []Group{{Name: "cpu", CPU: 1, MaxCPU: maxCPU, Memory: "2Gi", MaxMemory: "2Gi", Max: 4 * workers}},
		})
	}
	if err := inParallel(ctx, writtenNodes, h.node); err != nil {
		return nil, err
	}
	if err := inParallel(ctx, clusters, h.cluster); err != nil {
		return nil, err
	}
	return h, inParallel(ctx, clusters*(workers+1), h.pod)
}

// Played is the played Ray of the i-th cluster.
func (h *WrittenClusters) Played(i int) *playgcs.Cluster {
	return h.GCS.Cluster(h.Clusters[i].Namespace + "/" + h.Clusters[i].Name)
}

func (h *WrittenClusters) node(ctx context.Context, i int) error {
	size := map[string]any{"cpu": "256", "memory": "1Ti", "pods": "1000"}
	node := rig.Object{}.Set("apiVersion", "v1").Set("kind", "Node").
		Set("metadata.name", nodeOf(i)).
		Set("status.capacity", size).Set("status.allocatable", size)
	ready := []any{map[string]any{"type": "Ready", "status": "True"}}
	node.Set("status.conditions", ready)
	if _, err := h.Lab.Request(ctx, http.MethodPost, "/api/v1/nodes", node.JSON()); err != nil {
		return err
	}
	lease := rig.Object{}.Set("apiVersion", "coordination.k8s.io/v1").Set("kind", "Lease").
		Set("metadata.name", nodeOf(i)).Set("spec", leaseSpec(nodeOf(i)))
	_, err := h.Lab.Request(ctx, http.MethodPost, nodeLeases, lease.JSON())
	return err
}

func nodeOf(i int) string { return fmt.Sprintf("written-node-%02d", i%writtenNodes) }

func (h *WrittenClusters) cluster(ctx context.Context, i int) error {
	object := h.Clusters[i].Object().Set("spec.workerGroupSpecs[0].replicas", h.Workers)
	answer, err := h.Lab.Request(ctx, http.MethodPost, clustersPath(h.Clusters[i].Namespace), object.JSON())
	if err != nil {
		return err
	}
	var made rig.Object
	if err := json.Unmarshal(answer, &made); err != nil {
		return fmt.Errorf("read the answer about %s: %w", h.Clusters[i].Name, err)
	}
	h.uids[i], _ = made.Get("metadata.uid").(string)
	return nil
}

// pod writes the n-th pod of all: each cluster's first is its head.
func (h *WrittenClusters) pod(ctx context.Context, n int) error {
	i, k := n/(h.Workers+1), n%(h.Workers+1)
	c := h.Clusters[i]
	name, group := fmt.Sprintf("%s-cpu-worker-%04d", c.Name, k), "cpu"
	if k == 0 {
		name, group = c.Name+"-head", "headgroup"
	}
	object := h.podObject(c, name, group, n).Set("metadata.ownerReferences", []any{map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": c.Name, "uid": h.uids[i], "controller": true,
	}})
	path := "/api/v1/namespaces/" + c.Namespace + "/pods"
	if _, err := h.Lab.Request(ctx, http.MethodPost, path, object.JSON()); err != nil {
		return fmt.Errorf("create pod %s: %w", name, err)
	}
	// 127.210.0.0/15 is none of a lab's own networks.
	address := fmt.Sprintf("127.%d.%d.%d", 210+n/62500, n/250%250, n%250+1)
	status := rig.Object{}.Set("status", podStatus(object, address))
	if _, err := h.Lab.Request(ctx, http.MethodPatch, path+"/"+name+"/status", status.JSON()); err != nil {
		return fmt.Errorf("write the status of pod %s: %w", name, err)
	}
	total := map[string]float64{"memory": 2 << 30, "object_store_memory": 1e8}
	if k == 0 {
		total["node:__internal_head__"] = 1
		if err := h.GCS.Serve(h.Played(i), address+":"+strconv.Itoa(c.Port)); err != nil {
			return err
		}
	} else {
		total["CPU"] = 1
	}
	h.Played(i).Join(name, group, address, k == 0, total)
	return nil
}

// podObject is a pod such as KubeRay makes, with as much in it.
func (h *WrittenClusters) podObject(c Cluster, name, group string, n int) rig.Object {
	kind, container := "worker", "ray-worker"
	if group == "headgroup" {
		kind, container = "head", "ray-head"
	}
	size := map[string]any{"cpu": "1", "memory": "2Gi"}
	env := []any{}
	for _, name := range []string{"RAY_CLUSTER_NAMESPACE", "RAY_NODE_TYPE_NAME", "KUBERAY_GEN_RAY_START_CMD", "RAY_PORT", "RAY_ADDRESS",
		"RAY_USAGE_STATS_KUBERAY_IN_USE", "RAY_USAGE_STATS_EXTRA_TAGS", "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "FQ_RAY_IP", "RAY_IP", "REDIS_PASSWORD"} {
		env = append(env, map[string]any{"name": name, "value": "ray start --head --block --num-cpus=1 --memory=2147483648 " + c.Name})
	}
	main := map[string]any{
		"name": container, "image": "rayproject/ray:2.60.0", "env": env,
		"command":   []string{"/bin/bash", "-c", "--"},
		"args":      []string{"ulimit -n 65536; ray start --address=" + c.Name + "-head-svc.default.svc.cluster.local:6379 --block --num-cpus=1 --memory=2147483648"},
		"ports":     []any{map[string]any{"name": "metrics", "containerPort": 8080}},
		"resources": map[string]any{"requests": size, "limits": size},
	}
	containers := []any{main}
	if kind == "head" {
		containers = append(containers, map[string]any{
			"name": "autoscaler", "image": "rayfit:lab", "command": []string{"/bin/bash", "-c", "--"},
			"args":      []string{"ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"},
			"resources": map[string]any{"requests": size, "limits": size},
		})
	}
	return rig.Object{}.Set("apiVersion", "v1").Set("kind", "Pod").
		Set("metadata", map[string]any{
			"name": name, "namespace": c.Namespace,
			"labels": map[string]any{
				"ray.io/is-ray-node": "yes", "ray.io/cluster": c.Name, "ray.io/node-type": kind, "ray.io/group": group,
				"ray.io/identifier": c.Name + "-" + kind, "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
			},
		}).
		Set("spec", map[string]any{
			"nodeName": nodeOf(n), "restartPolicy": "Never", "containers": containers,
			"tolerations": []any{map[string]any{"operator": "Exists"}},
		})
}

func podStatus(pod rig.Object, address string) map[string]any {
	var statuses []any
	for _, c := range pod.Get("spec.containers").([]any) {
		c := rig.Object(c.(map[string]any))
		statuses = append(statuses, map[string]any{
			"name": c["name"], "image": c["image"], "imageID": c["image"], "containerID": "played://" + address, "ready": true, "started": true,
			"restartCount": 0, "resources": c["resources"], "allocatedResources": c.Get("resources.requests"),
			"state": map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}},
		})
	}
	return map[string]any{
		"phase": "Running", "podIP": address, "podIPs": []any{map[string]any{"ip": address}},
		"conditions":        []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "PodScheduled", "status": "True"}},
		"containerStatuses": statuses,
	}
}

// inParallel does something for each number below a count, and stops at errors.
func inParallel(ctx context.Context, count int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	numbers := make(chan int)
	errs := make([]error, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := range numbers {
				if errs[w] = do(ctx, n); errs[w] != nil {
					cancel()
					return
				}
			}
		})
	}
	for n := range count {
		select {
		case numbers <- n:
		case <-ctx.Done():
		}
	}
	close(numbers)
	running.Wait()
	return errors.Join(errs...)
}
