package kueue_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// elastic is Kueue's gate of the pods of elastic jobs.
const elastic = `scheduling gate "kueue.x-k8s.io/elastic-job"`

// TestQueues has clusters in queues of their own at the same time.
func TestQueues(t *testing.T) {
	s := newStage(t)
	t.Run("of", func(t *testing.T) {
		t.Run("growth in mode central", func(t *testing.T) { t.Parallel(); s.grows(t, scaling.Central) })
		t.Run("growth in mode sidecar", func(t *testing.T) { t.Parallel(); s.grows(t, scaling.Sidecar) })
		t.Run("steps", func(t *testing.T) { t.Parallel(); s.stepwise(t) })
		t.Run("a part of a jump", func(t *testing.T) { t.Parallel(); s.halved(t) })
		t.Run("a group without quota", func(t *testing.T) { t.Parallel(); s.takesTurns(t) })
	})
	t.Run("preemption", s.preempted)
	t.Run("growth in place", s.unseen)
	t.Run("small sidecar", s.fits)
}

// grows has a cluster whose queue has room for two workers as long as a Job is in
// it, and for three without. A cluster of one worker that wants two more gets
// neither at first, because Kueue admits its new size as a whole or not at all;
// Rayfit says what they wait for. When the Job has gone before half a minute is
// over, all of them run, and none was taken back.
func (s stage) grows(t *testing.T, mode scaling.Mode) {
	name := "grows-" + string(mode)
	s.queue(t, name, "4050m", "20Gi")
	s.job(t, name+"-job", name, "low")
	c := &scaling.Cluster{Name: name, Mode: mode, Idle: 3600, Queue: name, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 4}}}
	d := s.drive(t, c)
	hold(t, d, "one", 1)
	s.until(t, "the first task works", s.atWork(*c, "one", 1))

	hold(t, d, "two", 2)
	asked := time.Now()
	labtest.Eventually(t, scaling.Patience, "Rayfit names Kueue's gate", func() error { return s.named(t, *c) })
	t.Logf("named %s after two more workers were asked for", time.Since(asked).Round(10*time.Millisecond))
	if gated := s.gated(*c); gated != 2 {
		t.Errorf("%d pods are gated instead of two", gated)
	}
	if s.atWork(*c, "two", 0)() != nil {
		t.Error("Kueue has admitted a part of the new size")
	}

	s.kubectl(t, "delete", "job", name+"-job")
	freed := time.Now()
	s.until(t, "the other tasks work", s.atWork(*c, "two", 2))
	t.Logf("at work %s after the Job was deleted", time.Since(freed).Round(10*time.Millisecond))
	if n := s.Made(*c, ""); n != 3 {
		t.Errorf("the cluster has had %d workers instead of three: pods were withdrawn and made again", n)
	}
}

// named is nil once Rayfit says that Kueue's gate is why workers do not come: by an
// Event and in `rayfit status`, or in the log of the head's container, which may not
// write Events.
func (s stage) named(t *testing.T, c scaling.Cluster) error {
	t.Helper()
	if c.Mode == scaling.Central {
		return errors.Join(s.Said(c.Name, "Problem", elastic), s.status(t, c, elastic))
	}
	head, err := s.Head(c)
	if err != nil {
		return err
	}
	log := s.kubectl(t, "logs", head.Name(), "-c", "autoscaler")
	return errors.Join(contains(log, "scheduling gate"), contains(log, "kueue.x-k8s.io/elastic-job"))
}

// status is nil if `rayfit status` says a text about a cluster.
func (s stage) status(t *testing.T, c scaling.Cluster, text string) error {
	t.Helper()
	said, err := rig.Output(t.Context(), "status", s.Namespace+"/"+c.Name, "--kubeconfig="+s.Lab.Kubeconfig())
	if err != nil {
		return err
	}
	return contains(said, text)
}

// stepwise has a queue with room for two workers, and a policy that lets clusters
// grow by one pod at a time: what can be admitted is.
func (s stage) stepwise(t *testing.T) {
	const name = "stepwise"
	s.queue(t, name, "3050m", "20Gi")
	s.apply(t, `apiVersion: rayfit.dev/v1alpha1
kind: RayPolicy
metadata: {name: stepwise}
spec: {match: {kinds: [RayCluster], names: [stepwise]}, reconcile: {scaleUp: {maxPods: 1, perSeconds: 5}}}
`)
	c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Queue: name, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 4}}}
	d := s.drive(t, c)
	hold(t, d, "three", 3)
	s.until(t, "two of three tasks work", s.atWork(*c, "three", 2))
	s.until(t, "an Event names Kueue's gate", func() error { return s.Said(c.Name, "Problem", elastic) })
}

// halved has a queue with room for three workers, and a cluster that wants eight at
// once. Kueue refuses that as a whole; Rayfit asks for half as many, until some are
// admitted, and then for what is left, until one is left that is not.
func (s stage) halved(t *testing.T) {
	const name = "halved"
	s.queue(t, name, "4050m", "20Gi")
	c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Queue: name, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 8}}}
	d := s.drive(t, c)
	hold(t, d, "eight", 8)
	asked := time.Now()
	if err := s.UntilWithin(t.Context(), 5*time.Minute, "three of eight tasks work", s.atWork(*c, "eight", 3)); err != nil {
		t.Fatal(err)
	}
	t.Logf("three of eight at work %s after they were asked for", time.Since(asked).Round(10*time.Millisecond))
	s.until(t, "one more worker waits to be admitted", func() error {
		if gated, all := s.gated(*c), len(s.Workers(*c, "")); gated != 1 || all != 4 {
			return fmt.Errorf("%d of %d workers are gated", gated, all)
		}
		return nil
	})
	s.until(t, "an Event says that fewer are asked for", func() error { return s.Said(c.Name, "Problem", "fewer are asked for at once") })
	// What is freed is used.
	s.queue(t, name, "6050m", "20Gi")
	if err := s.UntilWithin(t.Context(), 5*time.Minute, "five of eight tasks work", s.atWork(*c, "eight", 5)); err != nil {
		t.Fatal(err)
	}
	ever := len(s.EverWorkers(*c, ""))
	t.Logf("%d workers were made for five that were admitted", ever)
	if most := 24; ever > most {
		t.Errorf("%d workers were made, more than %d", ever, most)
	}
}

// takesTurns has a group that no quota has room for, and another one that fits. All
// groups of a cluster are one request to Kueue, so the first makes way for the other.
func (s stage) takesTurns(t *testing.T) {
	const name = "turns"
	s.queue(t, name, "6050m", "20Gi")
	c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Queue: name, Groups: []scaling.Group{
		{Name: "large", CPU: 8, Max: 2}, {Name: "small", CPU: 1, Max: 4},
	}}
	d := s.drive(t, c)
	if err := d.Do(t.Context(), `hold("large", 1, num_cpus=8)`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the large worker waits to be admitted", func() error {
		if gated := s.gated(*c); gated != 1 {
			return fmt.Errorf("%d workers are gated", gated)
		}
		return nil
	})
	hold(t, d, "small", 2)
	if err := s.UntilWithin(t.Context(), 5*time.Minute, "the small tasks work", s.atWork(*c, "small", 2)); err != nil {
		t.Fatal(err)
	}
}

// unseen has a worker that grows in place to three times its size, in a queue with
// room for its first size alone: Kueue goes by the templates of pods.
func (s stage) unseen(t *testing.T) {
	const name = "unseen"
	s.queue(t, name, "2050m", "20Gi")
	c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Queue: name, Groups: []scaling.Group{{Name: "cpu", CPU: 1, MaxCPU: 3, Max: 1}}}
	d := s.drive(t, c)
	hold(t, d, "three", 3)
	s.until(t, "three tasks work", s.atWork(*c, "three", 3))
	workers := s.Workers(*c, "")
	if len(workers) != 1 || workers[0].Get("spec.containers[0].resources.requests.cpu") != "3" {
		t.Fatalf("%d workers, and not one of 3 CPUs", len(workers))
	}
	usage := s.kubectl(t, "get", "clusterqueue", name, "-o", `jsonpath={.status.flavorsUsage[0].resources[?(@.name=="cpu")].total}`)
	if usage != "2050m" {
		t.Errorf("Kueue counts %s CPU: say so in docs/integrations.md", usage)
	}
}

// preempted has a cluster that Kueue suspends for a Job of higher priority, and
// lets go on when that has gone.
func (s stage) preempted(t *testing.T) {
	const name = "preempted"
	s.queue(t, name, "2050m", "20Gi")
	c := &scaling.Cluster{Name: name, Mode: scaling.Central, Idle: 3600, Queue: name, Priority: "low", Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 2}}}
	d := s.drive(t, c)
	hold(t, d, "one", 1)
	s.until(t, "the task works", s.atWork(*c, "one", 1))

	s.job(t, "urgent", name, "high")
	d.Close()
	s.until(t, "the cluster is suspended and its pods are gone", func() error {
		cluster, err := s.RayCluster(*c)
		if err != nil {
			return err
		}
		if cluster.Get("spec.suspend") != true || len(s.Workers(*c, "")) > 0 {
			return fmt.Errorf("suspend is %v, with %d workers", cluster.Get("spec.suspend"), len(s.Workers(*c, "")))
		}
		if _, err := s.Head(*c); err == nil {
			return fmt.Errorf("the head is there")
		}
		return nil
	})
	cluster, err := s.RayCluster(*c)
	if err != nil {
		t.Fatal(err)
	}
	if replicas := cluster.Get("spec.workerGroupSpecs[0].replicas"); replicas != 1.0 {
		t.Errorf("the suspended cluster has replicas %v", replicas)
	}

	s.kubectl(t, "delete", "job", "urgent")
	s.until(t, "the cluster is let go on", func() error {
		_, err := s.Head(*c)
		return err
	})
	again := scalingtest.Connect(t, *c, s.Drive)
	hold(t, again, "again", 1)
	s.until(t, "a task works again", s.atWork(*c, "again", 1))
}

// fits has two queues with exactly the room that a head takes with Rayfit in its
// autoscaler container. With Ray's own a cluster does not fit.
func (s stage) fits(t *testing.T) {
	for _, mode := range []scaling.Mode{scaling.Ray, scaling.Central} {
		name := "small-" + string(mode)
		s.queue(t, name, "1050m", "2112Mi")
		// The one with Ray's autoscaler is never admitted, so it needs no port of its own.
		port, err := lab.HoldPort()
		if err != nil {
			t.Fatal(err)
		}
		c := scaling.Cluster{Name: name, Mode: mode, Port: port, Queue: name, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 4}}}
		if _, err := s.Lab.Request(t.Context(), http.MethodPost, "/apis/ray.io/v1/namespaces/default/rayclusters", c.Object().JSON()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.kubectl(t, "delete", "raycluster", name) })
	}
	reserved := func(mode scaling.Mode) string {
		return s.kubectl(t, "get", "workloads", "-o", fmt.Sprintf(`jsonpath={.items[?(@.metadata.ownerReferences[0].name=="small-%s")].status.conditions[?(@.type=="QuotaReserved")].message}`, mode))
	}
	s.until(t, "the cluster with Rayfit is admitted", func() error {
		_, err := s.Head(scaling.Cluster{Name: "small-central"})
		return err
	})
	labtest.Eventually(t, scaling.Patience, "the cluster with Ray's autoscaler is not, for want of what its container takes", func() error {
		said := reserved(scaling.Ray)
		return errors.Join(
			contains(said, "request (1500m) > maximum capacity (1050m)"),
			contains(said, "request (2560Mi) > maximum capacity (2112Mi)"))
	})
}
