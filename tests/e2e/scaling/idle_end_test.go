package scaling_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestIdleClustersEnd has clusters that are to end when nobody has used them for 15
// seconds: not while a driver is there, and not while a detached actor is. One is to
// be deleted, for which an install needs a right of its own. KubeRay's part is
// played: the released one knows none of the fields, so their definition is added,
// nothing follows from `idleSuspend`, and nobody but the test removes finalizers.
func TestIdleClustersEnd(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	kubectl(t, w, "patch", "crd", "rayclusters.ray.io", "--type=json", `--patch=[
		{"op":"add","path":"`+spec+`idleTerminationOptions","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
		{"op":"add","path":"`+spec+`idleSuspend","value":{"type":"boolean"}}]`)
	if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
		t.Fatal(err)
	}
	const timeout = 15 * time.Second
	cluster := func(name, policy string) (*scaling.Cluster, *scaling.Driver) {
		c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 2}}}
		d := drive(t, w, c)
		options := rig.Object{}.Set("spec.idleTerminationOptions.timeoutSeconds", int(timeout.Seconds())).
			Set("spec.idleTerminationOptions.policy", policy)
		if err := w.Patch(t.Context(), *c, options); err != nil {
			t.Fatal(err)
		}
		return c, d
	}
	driven, driver := cluster("driven", "Suspend")
	served, server := cluster("served", "Suspend")
	deleted, user := cluster("deleted", "Delete")
	mine := rig.Object{}.Set("metadata.finalizers", []string{somebodys})
	if err := w.Patch(t.Context(), *deleted, mine); err != nil {
		t.Fatal(err)
	}
	user.Close()
	do(t, server, `hold_actors("server", 1, num_cpus=0, name="server", namespace="mine", lifetime="detached")`)
	until(t, w, "the actor works", func() error { return w.TaskGate.AtWork(batch(*served, "server"), 1) })
	nap(t, w, driver, *driven, "work", 1, 20)
	within(t, w, "the task ends", func() error { return attempted(w, *driven, "work-ended", 1) })
	if suspended(w, *driven) == nil {
		t.Error("the cluster was suspended under its driver")
	}
	server.Close()
	driver.Close()
	left := time.Now()
	until(t, w, "the cluster without a driver is suspended", func() error { return suspended(w, *driven) })
	took := time.Since(left).Round(100 * time.Millisecond)
	t.Logf("suspended %s after its driver had gone", took)
	if took < timeout {
		t.Errorf("the cluster was suspended %s after its driver had gone", took)
	}
	until(t, w, "an Event says so", func() error {
		return w.Said(driven.Name, "IdleTermination", "neither a driver nor a detached actor")
	})
	if suspended(w, *served) == nil {
		t.Error("the cluster was suspended under its detached actor")
	}
	last := scalingtest.Connect(t, *served, w.Drive)
	do(t, last, `ray.kill(ray.get_actor("server", namespace="mine"))`)
	last.Close()
	until(t, w, "the cluster without its actor is suspended", func() error { return suspended(w, *served) })

	until(t, w, "it is said what the deletion needs", func() error {
		return w.Said(deleted.Name, "RightMissing", "--delete-idle-clusters")
	})
	if err := scaling.AllowDeletion(t.Context(), w.Lab); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the cluster that nobody uses is being deleted", func() error { return isDeleted(w, *deleted) })
	seen, err := w.RayCluster(*deleted)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(seen.Get("metadata.finalizers")); got != fmt.Sprint([]string{somebodys, cleanup}) {
		t.Errorf("its finalizers are %s", got)
	}
	for _, c := range []*scaling.Cluster{driven, served} {
		if isDeleted(w, *c) == nil {
			t.Errorf("cluster %s is deleted, which was only to be suspended", c.Name)
		}
	}
	if err := w.Patch(t.Context(), *deleted, rig.Object{}.Set("metadata.finalizers", nil)); err != nil {
		t.Fatal(err)
	}
	until(t, w, "it is gone", func() error {
		if _, err := w.RayCluster(*deleted); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

const (
	// somebodys is a finalizer that somebody else has put on a cluster.
	somebodys = "example.org/mine"
	// cleanup is that by which KubeRay cleans up after a cluster that nobody used.
	cleanup = "ray.io/idle-termination-cleanup-finalizer"
)

// isDeleted is nil if a cluster is being deleted.
func isDeleted(w *scaling.World, c scaling.Cluster) error {
	seen, err := w.RayCluster(c)
	if err != nil {
		return err
	}
	if seen.Get("metadata.deletionTimestamp") == nil {
		return fmt.Errorf("nobody has deleted %s", c.Name)
	}
	return nil
}

// suspended is nil if a cluster was asked to be suspended because nobody uses it.
func suspended(w *scaling.World, c scaling.Cluster) error {
	seen, err := w.RayCluster(c)
	if err != nil {
		return err
	}
	if is := seen.Get("spec.idleSuspend"); is != true {
		return fmt.Errorf("spec.idleSuspend of %s is %v", c.Name, is)
	}
	return nil
}
