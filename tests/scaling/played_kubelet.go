package scaling

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

const (
	nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	// renewal is how often a kubelet renews its node's Lease. A node whose Lease is a minute
	// old is tainted as unreachable, and Rayfit lets no pod grow there.
	renewal = 10 * time.Second
)

// Kubelets acts as the kubelets of the written pods, until the context ends: nodes stay
// ready, and every resize fits, so what a pod's spec asks for is written into its status. It
// returns what went wrong meanwhile.
func (h *WrittenClusters) Kubelets(ctx context.Context) error {
	renewed := make(chan error, 1)
	go func() { renewed <- h.renewLeases(ctx) }()
	return errors.Join(h.resizePods(ctx), <-renewed)
}

func (h *WrittenClusters) renewLeases(ctx context.Context) error {
	for {
		err := inParallel(ctx, writtenNodes, func(ctx context.Context, i int) error {
			lease := rig.Object{}.Set("spec", leaseSpec(nodeOf(i)))
			_, err := h.Lab.Request(ctx, http.MethodPatch, nodeLeases+"/"+nodeOf(i), lease.JSON())
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("renew the Leases of nodes: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewal):
		}
	}
}

func leaseSpec(node string) map[string]any {
	return map[string]any{
		"holderIdentity": node, "leaseDurationSeconds": 40,
		"renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
}

func (h *WrittenClusters) resizePods(ctx context.Context) error {
	resized := make(chan rig.Object, len(h.Clusters)*(h.Workers+1))
	errs := make([]error, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for pod := range resized {
				errs[w] = errors.Join(errs[w], h.writeStatus(ctx, pod))
			}
		})
	}
	lab.Follow(ctx, func() {
		_ = lab.Watch(ctx, h.Lab, "/api/v1/namespaces/"+Namespace+"/pods", func(event lab.WatchEvent[rig.Object]) {
			if event.Type != "BOOKMARK" && event.Type != "DELETED" && resizeIsAsked(event.Object) {
				resized <- event.Object
			}
		})
	})
	close(resized)
	running.Wait()
	return errors.Join(errs...)
}

func resizeIsAsked(pod rig.Object) bool {
	asked, granted := pod.Get("spec.containers[0].resources"), pod.Get("status.containerStatuses[0].resources")
	return granted != nil && !reflect.DeepEqual(asked, granted)
}

func (h *WrittenClusters) writeStatus(ctx context.Context, pod rig.Object) error {
	address, _ := pod.Get("status.podIP").(string)
	status := rig.Object{}.Set("status", podStatus(pod, address)).Set("status.observedGeneration", pod.Get("metadata.generation"))
	path := "/api/v1/namespaces/" + Namespace + "/pods/" + pod.Name() + "/status"
	if _, err := h.Lab.Request(ctx, http.MethodPatch, path, status.JSON()); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("write the size of pod %s: %w", pod.Name(), err)
	}
	return nil
}
