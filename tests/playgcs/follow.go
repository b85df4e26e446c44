package playgcs

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// defaultPort is that of a GCS where the head's pod does not say.
const defaultPort = "6379"

// Follow makes nodes of a lab's running Ray pods, until the context ends: a head
// begins to answer at its pod's address, a worker joins its cluster, and both
// leave when their pod does.
func (s *Server) Follow(ctx context.Context, l *lab.Lab) {
	lab.Follow(ctx, func() {
		_ = lab.Watch(ctx, l, "/api/v1/pods?labelSelector=ray.io%2Fis-ray-node%3Dyes", func(event lab.WatchEvent[rig.Object]) {
			if event.Type != "BOOKMARK" {
				s.see(event.Type, event.Object)
			}
		})
	})
}

func (s *Server) see(change string, pod rig.Object) {
	c := s.Cluster(text(pod, "metadata.namespace") + "/" + text(pod, "metadata.labels[ray.io/cluster]"))
	head := text(pod, "metadata.labels[ray.io/node-type]") == "head"
	ip := text(pod, "status.podIP")
	address := net.JoinHostPort(ip, gcsPort(pod))
	ended := change == "DELETED" || pod.Get("metadata.deletionTimestamp") != nil
	switch {
	case ended:
		c.Leave(pod.Name())
		if head && ip != "" {
			s.Silence(address)
		}
	case text(pod, "status.phase") == "Running" && ip != "":
		c.Join(pod.Name(), text(pod, "metadata.labels[ray.io/group]"), ip, head, sizeOf(pod, head))
		if head {
			// An address that is still another pod's comes free with its end,
			// and the pod's next change tries again.
			_ = s.Serve(c, address)
		}
	}
}

func gcsPort(pod rig.Object) string {
	variables, _ := pod.Get("spec.containers[0].env").([]any)
	for _, one := range variables {
		if one, ok := one.(map[string]any); ok && one["name"] == "RAY_PORT" {
			if port, ok := one["value"].(string); ok {
				return port
			}
		}
	}
	return defaultPort
}

// sizeOf is what Ray would find in a pod. A head takes no work.
func sizeOf(pod rig.Object, head bool) map[string]float64 {
	limit := func(name string) float64 { return quantity(text(pod, "spec.containers[0].resources.limits."+name)) }
	total := map[string]float64{"memory": limit("memory"), "object_store_memory": 1e8}
	if head {
		total["node:__internal_head__"] = 1
	} else {
		total["CPU"] = math.Ceil(limit("cpu"))
	}
	return total
}

// quantity reads the forms of Kubernetes' quantities that tests use.
func quantity(written string) float64 {
	units := map[string]float64{"m": 1e-3, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
	scale := 1.0
	for unit, factor := range units {
		if digits, found := strings.CutSuffix(written, unit); found {
			written, scale = digits, factor
			break
		}
	}
	amount, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return 0
	}
	return amount * scale
}

func text(o rig.Object, path string) string {
	if value := o.Get(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}
