package scaling_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// What one process may use for so many clusters, and how soon a burst on every one is answered.
const (
	mostClusters = 1000
	mostMemory   = 200 // MiB
	mostCores    = 0.3
	mostBurst    = 10 * time.Second
	mostWait     = time.Second
	mostPause    = 2 * time.Second
)

// full says whether the full size is asked for; it takes minutes.
func full() bool { return os.Getenv("RAYFIT_LONG") != "" }

// TestManyClusters has as many clusters as RAYFIT_CLUSTERS says, if that is set. Above
// mostClusters it only measures: the machine may be too small for them.
func TestManyClusters(t *testing.T) {
	clusters := 100
	if full() {
		clusters = mostClusters
	}
	if asked := os.Getenv("RAYFIT_CLUSTERS"); asked != "" {
		var err error
		if clusters, err = strconv.Atoi(asked); err != nil {
			t.Fatal("RAYFIT_CLUSTERS is to be a number: ", err)
		}
	}
	burst(t, clusters, 9)
}

func TestLargeCluster(t *testing.T) {
	workers := 300
	if full() {
		workers = 2000
	}
	burst(t, 1, workers)
}

// burst measures a process over clusters at rest, then asks each for one worker
// more.
func burst(t *testing.T, clusters, workers int) {
	written := write(t, clusters, workers, 0)
	controller, w := lookAfter(t, written, "")
	cores, err := rig.Cores(t.Context(), controller.PID(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	quiet := memory(t, controller, "VmRSS")

	begin := time.Now()
	for i := range clusters {
		written.Played(i).Ask(workers+1, map[string]float64{"CPU": 1})
	}
	until(t, w, "every cluster gets a worker more", func() error { return haveReplicas(w, written, workers+1) })
	burst := time.Since(begin)
	peak := memory(t, controller, "VmHWM")
	t.Logf("%d x %d pods: %.0f MiB and %.2f cores at rest, %.0f MiB at most; all patched %s after demand on each",
		clusters, workers+1, quiet, cores, peak, burst.Round(time.Millisecond))
	if clusters > mostClusters {
		return
	}
	if peak > mostMemory {
		t.Errorf("it took %.0f MiB, more than %d", peak, mostMemory)
	}
	if full() && cores > mostCores {
		t.Errorf("at rest it takes %.2f cores, more than %.1f", cores, mostCores)
	}
	if full() && burst > mostBurst {
		t.Errorf("the last cluster was patched after %s, later than %s", burst, mostBurst)
	}
}

// TestASlowGateIsNeverIdle has clusters that want to write ten times as much as the rate
// of the API gate allows: waiting there is no work after which a cluster rests, so that
// one write follows another as fast as the gate lets them.
func TestASlowGateIsNeverIdle(t *testing.T) {
	const clusters, rate = 50, 5
	written := write(t, clusters, 2, 0)
	proxy, err := faulty.Start(written.Lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	_, w := lookAfter(t, written, proxy.URL, fmt.Sprintf("--api-rate=%d", rate), "--api-burst=1")
	for i := range clusters {
		written.Played(i).Ask(3, map[string]float64{"CPU": 1})
	}
	until(t, w, "every cluster is patched", func() error {
		if n := len(patched(proxy.Writes())); n < clusters {
			return fmt.Errorf("%d of %d are", n, clusters)
		}
		return nil
	})
	times := slices.SortedFunc(maps.Values(patched(proxy.Writes())), time.Time.Compare)
	var longest time.Duration
	for i := range times[1:] {
		longest = max(longest, times[i+1].Sub(times[i]))
	}
	t.Logf("%d clusters patched within %s at %d requests a second, at most %s between two",
		clusters, times[clusters-1].Sub(times[0]).Round(time.Millisecond), rate, longest.Round(time.Millisecond))
	if full() && longest > mostPause {
		t.Errorf("nothing was patched for %s", longest)
	}
}

// TestTwoInstallations has two installations for more clusters than one is to have. One
// of them is told both namespaces, which is a mistake: the hand-over record still keeps
// it away from the clusters that the other one has.
func TestTwoInstallations(t *testing.T) {
	clusters, workers := 40, 9
	if full() {
		clusters = 1000
	}
	namespaces := []string{"team-a", "team-b"}
	written := write(t, clusters, workers, 0, namespaces...)
	told := [][]string{{"team-a"}, namespaces}
	var worlds []*scaling.World
	var installations []*scaling.Controller
	for i, namespace := range namespaces {
		installation, err := scaling.StartInstallation(t.Context(), written.Lab, "rayfit-"+namespace, told[i]...)
		if err != nil {
			t.Fatal(err)
		}
		world, err := scaling.ObserveIn(t.Context(), written.Lab, namespace)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(world.Close)
		installations, worlds = append(installations, installation), append(worlds, world)
		labtest.Eventually(t, scaling.Patience, "each cluster of "+namespace+" is looked after", func() error {
			return lookedAfter(written, namespace)
		})
	}

	begin := time.Now()
	for i := range clusters {
		written.Played(i).Ask(workers+1, map[string]float64{"CPU": 1})
	}
	for i, namespace := range namespaces {
		until(t, worlds[i], "each cluster of "+namespace+" gets a worker more of its installation", func() error {
			return haveReplicas(worlds[i], written, workers+1)
		})
		for _, c := range written.Clusters {
			if c.Namespace != namespace {
				continue
			}
			object, err := worlds[i].RayCluster(c)
			if err != nil {
				t.Fatal(err)
			}
			if by := object.Get("metadata.annotations[rayfit.dev/scaled-by]"); by != "central/rayfit-"+namespace {
				t.Errorf("%s/%s is scaled by %v", namespace, c.Name, by)
			}
		}
	}
	took := time.Since(begin)
	for i, namespace := range namespaces {
		t.Logf("%s: %.0f MiB at most", namespace, memory(t, installations[i], "VmHWM"))
	}
	t.Logf("%d clusters of %d pods: all patched %s after demand on each", clusters, workers+1, took.Round(time.Millisecond))
	if full() && took > mostBurst {
		t.Errorf("the last cluster was patched after %s, later than %s", took, mostBurst)
	}
}

// write writes clusters at rest into a lab without an operator and kubelets. Workers may
// grow in place up to maxCPU, if that is not 0.
func write(t *testing.T, clusters, workers, maxCPU int, namespaces ...string) *scaling.WrittenClusters {
	t.Helper()
	l := labtest.Start(t, lab.Options{AdmissionOnly: true})
	for _, namespace := range namespaces {
		labtest.Kubectl(t, l, "create", "namespace", namespace)
	}
	gcs := playgcs.New(func() {})
	t.Cleanup(gcs.Stop)
	begin := time.Now()
	written, err := scaling.WriteClusters(t.Context(), l, gcs, clusters, workers, maxCPU, namespaces...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters of %d pods written in %s", clusters, workers+1, time.Since(begin).Round(time.Second))
	return written
}

// lookAfter starts a controller, which reaches the API server at a URL if one is given, and
// waits until it looks after each of the clusters.
func lookAfter(t *testing.T, written *scaling.WrittenClusters, url string, args ...string) (*scaling.Controller, *scaling.World) {
	t.Helper()
	controller, err := scaling.StartController(t.Context(), written.Lab, url, args...)
	if err != nil {
		t.Fatal(err)
	}
	w := scalingtest.Observe(t, written.Lab)
	labtest.Eventually(t, scaling.Patience, "every cluster is looked after", func() error {
		return lookedAfter(written, w.Namespace)
	})
	return controller, w
}

// lookedAfter is nil when somebody follows each of the clusters of a namespace.
func lookedAfter(written *scaling.WrittenClusters, namespace string) error {
	for i, c := range written.Clusters {
		if c.Namespace != namespace {
			continue
		}
		if err := asked(written.Played(i)); err != nil {
			return err
		}
	}
	return nil
}

// haveReplicas is nil when each of the clusters in a world's namespace has so many replicas.
func haveReplicas(w *scaling.World, written *scaling.WrittenClusters, replicas int) error {
	missing := 0
	for _, c := range written.Clusters {
		if c.Namespace != w.Namespace {
			continue
		}
		object, err := w.RayCluster(c)
		if err != nil {
			return err
		}
		if n, _ := object.Get("spec.workerGroupSpecs[0].replicas").(float64); int(n) != replicas {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d clusters are not patched", missing, len(written.Clusters))
	}
	return nil
}

// asked is nil when somebody follows a played cluster.
func asked(played *playgcs.Cluster) error {
	if n := played.Calls()["GetClusterResourceState"]; n < 3 {
		return fmt.Errorf("%s was asked %d times instead of three", played.Name, n)
	}
	return nil
}

func memory(t *testing.T, c *scaling.Controller, figure string) float64 {
	t.Helper()
	mebibytes, err := rig.Memory(c.PID(), figure)
	if err != nil {
		t.Fatal(err)
	}
	return mebibytes
}

// most is to how many workers one cluster is taken.
func most() int {
	if full() {
		return 1000
	}
	return 100
}

// TestFromNothingToMany takes one cluster from no worker to as many as there are
// tasks, through the real operator, scheduler and kubelets.
func TestFromNothingToMany(t *testing.T) {
	tasks := most()
	s := played(t)
	w := s.World
	controller := s.control(t, s.proxy)
	c := &scaling.Cluster{Name: "many", Mode: scaling.Central, Idle: 3600, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 2 * tasks}}}
	scalingtest.Create(t, w, c)
	played := s.played(*c)
	until(t, w, "the controller looks after it", func() error { return asked(played) })
	begin := time.Now()
	played.Ask(tasks, map[string]float64{"CPU": 1})
	var patched, answered time.Duration // since the demand is there, and since the GCS has told of it
	// The operator makes the pods, and kubelets start them, some ten a second.
	err := w.UntilWithin(t.Context(), 5*scaling.Patience, "every task has a node", func() error {
		if object, err := w.RayCluster(*c); err == nil && patched == 0 {
			if n, _ := object.Get("spec.workerGroupSpecs[0].replicas").(float64); int(n) == tasks {
				patched, answered = time.Since(begin), time.Since(played.Shown())
			}
		}
		if n := played.Waiting(); n > 0 {
			return fmt.Errorf("%d tasks wait", n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v; the patch came after %s", err, patched.Round(time.Millisecond))
	}
	t.Logf("%d workers asked for after %s (%s after the GCS was looked at), all there after %s; %.0f MiB",
		tasks, patched.Round(time.Millisecond), answered.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), memory(t, controller, "VmHWM"))
	if made := w.Made(*c, ""); made != tasks {
		t.Errorf("%d workers were made for %d tasks", made, tasks)
	}
	// The demand came just after a look, and a cluster at rest is looked at once a
	// second: that wait is the price of idle clusters, not of many workers.
	if full() && answered > mostWait {
		t.Errorf("the one patch came %s after the GCS was looked at, later than %s", answered, mostWait)
	}
}
