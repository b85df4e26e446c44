package scaling

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// Namespace is where the clusters of a world are that was not told another.
const Namespace = "default"

// Patience is how long anything may take on a busy machine.
const Patience = 5 * time.Minute

// World is a lab with everything that is observed in one of its namespaces.
type World struct {
	Lab       *lab.Lab
	TaskGate  *TaskGate
	Namespace string

	pods, clusters, events *objectCache
	named                  named
	history                history
	cancel                 context.CancelFunc
	running                sync.WaitGroup

	mu     sync.Mutex
	change chan struct{} // closed at the next change
	// rayLogs are what Ray had logged when a wait was given up for the first time:
	// when a test ends, its clusters are gone, and their logs with them.
	rayLogs []string
	rayPort claim
}

// Observe begins to follow a lab's pods, RayClusters and Events. Close ends it.
func Observe(ctx context.Context, l *lab.Lab) (*World, error) {
	return ObserveIn(ctx, l, Namespace)
}

// ObserveIn is Observe for a namespace of a tenant's own.
func ObserveIn(ctx context.Context, l *lab.Lab, namespace string) (*World, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &World{Lab: l, Namespace: namespace, cancel: cancel, change: make(chan struct{})}
	var err error
	if w.TaskGate, err = newTaskGate(w.Notify); err != nil {
		cancel()
		return nil, err
	}
	w.pods = newObjectCache("/api/v1/namespaces/"+namespace+"/pods", w.Notify)
	w.clusters = newObjectCache(clustersPath(namespace), w.Notify)
	w.events = newObjectCache("/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", w.Notify)
	w.pods.note = w.history.note("Pod", describePod)
	w.events.note = w.history.note("Event", describeEvent)
	noteCluster := w.history.note("RayCluster", describeCluster)
	w.clusters.note = func(cluster rig.Object, gone bool) {
		w.named.note(cluster)
		noteCluster(cluster, gone)
	}
	for _, f := range []*objectCache{w.pods, w.clusters, w.events} {
		w.running.Go(func() { f.follow(ctx, l) })
		select {
		case <-f.synced:
		case <-time.After(Patience):
			w.Close()
			return nil, fmt.Errorf("no watch of %s begins", f.path)
		}
	}
	return w, nil
}

// Close ends the watches and lets tasks that are held go.
func (w *World) Close() {
	w.cancel()
	w.TaskGate.close()
	w.running.Wait()
	w.givePort("")
}

// Look makes everybody who waits look again: for changes that are seen elsewhere.
func (w *World) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.change)
	w.change = make(chan struct{})
}

// Until waits for a condition, looking at it after each change of anything that
// is observed. It returns the condition's last error if it does not come true.
func (w *World) Until(ctx context.Context, what string, condition func() error) error {
	return w.UntilWithin(ctx, Patience, what, condition)
}

// UntilWithin is Until, for what takes longer than most.
func (w *World) UntilWithin(ctx context.Context, patience time.Duration, what string, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	for {
		w.mu.Lock()
		change := w.change
		w.mu.Unlock()
		err := condition()
		if err == nil {
			return nil
		}
		var lost *Lost
		if errors.As(err, &lost) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-change:
		case <-ctx.Done():
			w.keepRayLogs()
			return fmt.Errorf("%s: not after %s: %w", what, time.Since(begin).Round(time.Millisecond), err)
		}
	}
}

func (w *World) keepRayLogs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rayLogs == nil {
		w.rayLogs = w.Lab.RayLogs()
	}
}

// RayLogs are what Ray had logged when a wait was given up for the first time.
func (w *World) RayLogs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rayLogs
}

// Lost is a condition that cannot come true any more.
type Lost struct{ What string }

func (l *Lost) Error() string { return l.What }

// Workers are a cluster's worker pods that are there and not being deleted, of
// the group if one is named.
func (w *World) Workers(c Cluster, group string) []Seen {
	return w.pods.all(func(p *Seen) bool {
		return p.Gone.IsZero() && p.Get("metadata.deletionTimestamp") == nil && isWorker(p, c, group)
	})
}

// EverWorkers are all worker pods that a cluster has ever had.
func (w *World) EverWorkers(c Cluster, group string) []Seen {
	return w.pods.all(func(p *Seen) bool { return isWorker(p, c, group) })
}

func isWorker(p *Seen, c Cluster, group string) bool {
	return p.Get("metadata.labels[ray.io/cluster]") == c.Name &&
		p.Get("metadata.labels[ray.io/node-type]") == "worker" &&
		(group == "" || p.Get("metadata.labels[ray.io/group]") == group)
}

// HasWorkers is nil if the group has exactly a number of workers.
func (w *World) HasWorkers(c Cluster, group string, count int) error {
	if n := len(w.Workers(c, group)); n != count {
		return fmt.Errorf("%d workers of group %q instead of %d", n, group, count)
	}
	return nil
}

// Head is a cluster's running head pod.
func (w *World) Head(c Cluster) (Seen, error) {
	heads := w.pods.all(func(p *Seen) bool {
		return p.Gone.IsZero() && p.Get("metadata.deletionTimestamp") == nil &&
			p.Get("metadata.labels[ray.io/cluster]") == c.Name && p.Get("metadata.labels[ray.io/node-type]") == "head"
	})
	if len(heads) != 1 {
		return Seen{}, fmt.Errorf("%d head pods of %s", len(heads), c.Name)
	}
	return heads[0], nil
}

// Pod is a pod by its name, as it was last seen.
func (w *World) Pod(name string) (Seen, error) {
	found, ok := w.pods.named(name)
	if !ok {
		return Seen{}, fmt.Errorf("no pod %s", name)
	}
	return found, nil
}

// fate says what has become of a pod and its containers, as it was last seen.
func (w *World) fate(name string) string {
	pod, err := w.Pod(name)
	if err != nil {
		return err.Error()
	}
	told := fmt.Sprintf("pod %s is %v", name, pod.Get("status.phase"))
	if !pod.Gone.IsZero() {
		told += " and gone"
	}
	statuses, _ := pod.Get("status.containerStatuses").([]any)
	for _, status := range statuses {
		status, _ := status.(map[string]any)
		told += fmt.Sprintf(", %v %v, before %v", status["name"], status["state"], status["lastState"])
	}
	return told
}

// RayCluster is a cluster's object.
func (w *World) RayCluster(c Cluster) (Seen, error) {
	found, ok := w.clusters.named(c.Name)
	if !ok || !found.Gone.IsZero() {
		return Seen{}, fmt.Errorf("no RayCluster %s", c.Name)
	}
	return found, nil
}

// Events are the Kubernetes Events about an object, by its name, as "reason: note".
func (w *World) Events(name string) []string {
	var lines []string
	for _, e := range w.events.all(func(o *Seen) bool { return o.Get("regarding.name") == name }) {
		reason, _ := e.Get("reason").(string)
		note, _ := e.Get("note").(string)
		lines = append(lines, reason+": "+note)
	}
	return lines
}

// Said is nil once an Event about an object, by its name, has the reason and says the text.
func (w *World) Said(name, reason, text string) error {
	events := w.Events(name)
	for _, event := range events {
		if strings.HasPrefix(event, reason+": ") && strings.Contains(event, text) {
			return nil
		}
	}
	return fmt.Errorf("no Event %s of %s with %q among %q", reason, name, text, events)
}

// Create creates a cluster in the world's namespace, and waits until its head's
// Ray answers the operator.
func (w *World) Create(ctx context.Context, c *Cluster) error {
	c.Namespace = w.Namespace
	if err := w.takePort(ctx, c); err != nil {
		return err
	}
	if _, err := w.Lab.Request(ctx, http.MethodPost, clustersPath(w.Namespace), c.Object().JSON()); err != nil {
		return fmt.Errorf("create RayCluster %s: %w", c.Name, err)
	}
	return w.Until(ctx, "wait for the head of "+c.Name, func() error {
		head, err := w.Head(*c)
		if err != nil {
			return err
		}
		return ready(head)
	})
}

// Delete deletes a cluster, unless it is gone, and waits until its pods are gone.
func (w *World) Delete(ctx context.Context, c Cluster) error {
	if seen, ok := w.clusters.named(c.Name); ok && !seen.Gone.IsZero() {
		return w.podsGone(ctx, c)
	}
	if _, err := w.Lab.Request(ctx, http.MethodDelete, clustersPath(w.Namespace)+"/"+c.Name, nil); err != nil {
		return fmt.Errorf("delete RayCluster %s: %w", c.Name, err)
	}
	return w.podsGone(ctx, c)
}

func (w *World) podsGone(ctx context.Context, c Cluster) error {
	return w.Until(ctx, "wait until the pods of "+c.Name+" are gone", func() error {
		left := w.pods.all(func(p *Seen) bool { return p.Gone.IsZero() && p.Get("metadata.labels[ray.io/cluster]") == c.Name })
		if len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		w.givePort(c.Name)
		return nil
	})
}

// Patch changes a cluster's object by a JSON merge patch.
func (w *World) Patch(ctx context.Context, c Cluster, patch rig.Object) error {
	if _, err := w.Lab.Request(ctx, http.MethodPatch, clustersPath(w.Namespace)+"/"+c.Name, patch.JSON()); err != nil {
		return fmt.Errorf("patch RayCluster %s: %w", c.Name, err)
	}
	return nil
}

func clustersPath(namespace string) string {
	return "/apis/ray.io/v1/namespaces/" + namespace + "/rayclusters"
}

// ready is nil if the pod's containers are all ready.
func ready(pod Seen) error {
	conditions, _ := pod.Get("status.conditions").([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("pod %s is %v and not ready", pod.Name(), pod.Get("status.phase"))
}
