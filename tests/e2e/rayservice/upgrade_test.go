package rayservice_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// TestIncrementalUpgrade upgrades a RayService step by step while clients send requests
// through its Gateway: each cluster has the workers that its share of the replicas needs,
// no request fails, and the new cluster scales with its load after it.
func TestIncrementalUpgrade(t *testing.T) {
	for _, mode := range scalingtest.Modes("central") {
		t.Run(string(mode), func(t *testing.T) { upgrade(t, mode) })
	}
}

func upgrade(t *testing.T, mode scaling.Mode) {
	s := start(t, mode)
	begin := time.Now()
	after := func() time.Duration { return time.Since(begin).Round(time.Second) }
	s.create(t, mode)
	var old scaling.Cluster
	s.until(t, "the RayService has a cluster with a worker for each replica", func() error {
		if old = s.cluster(t); old.Name == "" {
			return errors.New("it uses no cluster yet")
		}
		return s.HasWorkers(old, "", fewest)
	})
	s.until(t, "the RayService is ready", func() error { return s.condition(t, "Ready", "True") })
	load := scalingtest.NewClients(s.gateway(t), s.Notify)
	defer load.End()
	load.Set(fewest)
	s.until(t, "both replicas answer", func() error { return load.AnsweredBy(fewest) })
	t.Logf("both replicas answer after %s", after())

	s.change(t, mode, "new")
	load.Set(fewest)
	s.until(t, "the RayService is upgraded, and both versions have answered meanwhile", func() error {
		if err := load.Failed(); err != nil {
			return err
		}
		if s.cluster(t).Name == old.Name {
			return errors.New("it uses the old cluster")
		}
		if versions := answering(load); len(versions) < 2 {
			return fmt.Errorf("only of these versions there are answers: %v", versions)
		}
		return s.condition(t, "UpgradeInProgress", "False")
	})
	t.Logf("it is upgraded after %s", after())
	upgraded := s.cluster(t)
	s.until(t, "the old cluster has no workers any more", func() error {
		return errors.Join(load.Failed(), s.HasWorkers(old, "", 0))
	})
	t.Logf("the old cluster's workers are gone after %s", after())
	s.hadWorkers(t, old, fewest)
	s.hadWorkers(t, upgraded, fewest)
	if err := s.HasWorkers(upgraded, "", fewest); err != nil {
		t.Error(err)
	}

	// Scaling goes on.
	load.Set(4 * most)
	s.until(t, "all replicas answer", func() error { return load.AnsweredBy(most) })
	t.Logf("%d replicas answer after %s", most, after())
	if err := s.HasWorkers(upgraded, "", most); err != nil {
		t.Error(err)
	}
	if versions := answering(load); versions["old"] {
		t.Errorf("of these versions there are answers after the upgrade: %v", versions)
	}
	load.Set(fewest)
	s.until(t, "a worker has gone again", func() error {
		return errors.Join(load.Failed(), s.HasWorkers(upgraded, "", fewest))
	})
	t.Logf("a worker has gone again after %s", after())
	load.End()
	answered, failed := load.Results()
	t.Logf("%d requests were answered", answered)
	if len(failed) > 0 {
		t.Errorf("%d requests failed: %v", len(failed), failed)
	}
	s.hadWorkers(t, upgraded, most)
	s.deletedOnce(t)
}

// answering are the versions that have answered since the load was set.
func answering(load *scalingtest.Clients) map[string]bool {
	versions := map[string]bool{}
	for _, answer := range load.Answers() {
		version, _, _ := strings.Cut(answer, " ")
		versions[version] = true
	}
	return versions
}

// hadWorkers checks that so many workers were made for a cluster, and that none of them
// has ended by itself.
func (s scene) hadWorkers(t *testing.T, c scaling.Cluster, count int) {
	t.Helper()
	if made := s.Made(c, ""); made != count {
		t.Errorf("%d workers were made for %s instead of %d", made, c.Name, count)
	}
	for _, pod := range s.EverWorkers(c, "") {
		if !pod.Failed.IsZero() && !slices.ContainsFunc(s.NeverStarted(c, ""), func(p scaling.Seen) bool { return p.Name() == pod.Name() }) {
			t.Errorf("worker %s has ended by itself", pod.Name())
		}
	}
}

// deletedOnce checks that nobody has deleted a pod twice.
func (s scene) deletedOnce(t *testing.T) {
	t.Helper()
	calls, err := scaling.Calls(s.Lab, time.Time{}, func(c scaling.Call) bool {
		return c.Verb == "delete" && c.Object == "pods" && c.Status < 300 && !strings.HasPrefix(c.User, "system:node:")
	})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]string{}
	for _, call := range calls {
		by[call.Name] = append(by[call.Name], fmt.Sprintf("%s at %s", call.User, call.Ended.Format(time.StampMilli)))
	}
	t.Logf("deleted: %v", by)
	for name, deletions := range by {
		if len(deletions) > 1 {
			t.Errorf("pod %s was deleted by %v", name, deletions)
		}
	}
}
