package scaling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

const (
	// mostBreathing is what one process may use over 1,000 clusters whose pods grow and shrink.
	mostBreathing = 0.5
	// breath is how long a cluster takes from one burst to the next, at full size; `make
	// compare` has bursts as far apart.
	breath = 2 * time.Minute
	// work is how long the tasks of a burst run.
	work = 10 * time.Second
	// grown is up to how many CPUs a pod of one may grow.
	grown = 4
)

// TestClustersThatBreathe has clusters whose bursts come one after the other: the pods of
// each grow in place for its burst, and shrink again. What that costs the process that
// scales all of them is measured.
func TestClustersThatBreathe(t *testing.T) {
	clusters, period := 40, 15*time.Second
	if full() {
		clusters, period = 1000, breath
	}
	const workers = 2
	written := write(t, clusters, workers, grown)
	playing, stop := context.WithCancel(t.Context())
	kubelets := make(chan error, 1)
	go func() { kubelets <- written.Kubelets(playing) }()
	t.Cleanup(func() {
		stop()
		if err := <-kubelets; err != nil {
			t.Error(err)
		}
	})
	const own = 10
	controller, w := lookAfter(t, written, "", fmt.Sprintf("--cluster-metrics=%d", own))
	if full() {
		// For what is measured to be what goes on, and not how it begins.
		breathe(t, written, period)
	}
	var waits []time.Duration
	cores, err := rig.CoresDuring(controller.PID(), func() error {
		waits = breathe(t, written, period)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(waits)
	t.Logf("%d clusters of %d pods, a burst in each every %s: %.2f cores, %.0f MiB at most; half of the bursts have room after %s, all after %s",
		clusters, workers+1, period, cores, memory(t, controller, "VmHWM"), waits[len(waits)/2], waits[len(waits)-1])
	if full() && cores > mostBreathing {
		t.Errorf("it takes %.2f cores, more than %.1f", cores, mostBreathing)
	}
	until(t, w, "all pods are small again", func() error {
		large := 0
		for _, c := range written.Clusters {
			for _, pod := range w.Workers(c, "cpu") {
				if pod.Get("spec.containers[0].resources.limits.cpu") != "1" {
					large++
				}
			}
		}
		if large > 0 {
			return fmt.Errorf("%d pods are large", large)
		}
		return nil
	})
	labtest.Eventually(t, scaling.Patience, "metrics tell of it", func() error {
		metrics, err := controller.Metrics(t.Context())
		if err != nil {
			return err
		}
		return shown(metrics, clusters, own)
	})
	for _, c := range written.Clusters {
		if made := w.Made(c, "cpu"); made != workers {
			t.Errorf("%s has had %d workers instead of %d", c.Name, made, workers)
		}
	}
}

// shown is nil when metrics tell of clusters whose pods have grown and shrunk, of which some have
// series of their own; the others share one of each metric.
func shown(metrics rig.Metrics, clusters, own int) error {
	for name, least := range map[string]float64{
		"rayfit_scaled_clusters": 1, `rayfit_workers{state="running"}`: 2, `rayfit_resizes_total{outcome="done"}`: 2,
		"rayfit_saved_in_place_cpu_seconds_total": 1, "rayfit_saved_in_place_memory_byte_seconds_total": 0,
	} {
		name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		single, shared := 0, 0.0
		for series, value := range metrics {
			switch found, labels, _ := strings.Cut(series, "{"); {
			case found != name || !strings.Contains(labels, label):
			case strings.Contains(labels, `ray_io_cluster="`):
				if single++; value < least {
					return fmt.Errorf("%s is %g", series, value)
				}
			default:
				shared += value
			}
		}
		if single != own || shared < least*float64(clusters-own) {
			return fmt.Errorf("%s: %d clusters have series of their own, not %d, and the others sum up to %g", name, single, own, shared)
		}
	}
	return nil
}

// breathe gives each cluster a burst that its pods can serve by growing, one cluster after
// the other, and returns how long each of them waited until all of its tasks had room.
func breathe(t *testing.T, written *scaling.WrittenClusters, period time.Duration) []time.Duration {
	t.Helper()
	waits := make([]time.Duration, len(written.Clusters))
	errs := make([]error, len(written.Clusters))
	apart := time.NewTicker(period / time.Duration(len(waits)))
	defer apart.Stop()
	var bursts sync.WaitGroup
	for i := range waits {
		select {
		case <-apart.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		bursts.Go(func() { waits[i], errs[i] = burstOf(t.Context(), written.Played(i), written.Workers*grown) })
	}
	bursts.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	return waits
}

// burstOf has tasks of one CPU each run for a while in a cluster, and returns for how long the
// last of them waited.
func burstOf(ctx context.Context, played *playgcs.Cluster, tasks int) (time.Duration, error) {
	begin := time.Now()
	played.Ask(tasks, map[string]float64{"CPU": 1})
	defer played.Finish()
	err := lab.Eventually(ctx, scaling.Patience, played.Name+" serves its burst", func() error {
		if n := played.Waiting(); n > 0 {
			return fmt.Errorf("%d tasks wait", n)
		}
		return nil
	})
	waited := time.Since(begin).Round(10 * time.Millisecond)
	select {
	case <-time.After(work):
	case <-ctx.Done():
	}
	return waited, err
}
