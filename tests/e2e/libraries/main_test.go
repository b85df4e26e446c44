// Package libraries_test shows that Ray's own libraries get what they ask for in
// clusters that Rayfit scales and whose pods grow in place, and that nothing of
// theirs fails when pods come, change and go: real Ray Serve, Data, Tune and Train.
package libraries_test

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// patience is how long anything may take on a busy machine, on which some of the
// libraries need a minute only to be imported.
const patience = 5 * time.Minute

//go:embed libraries.py
var script string

// The worker group of each cluster: more than one pod at its resize limit is needed
// for what each library asks for, and all of them together are enough.
const (
	mostPods   = 3
	mostOfAPod = 2 // CPUs, of a pod that begins with one
	most       = mostPods * mostOfAPod
)

// TestLibraries has a cluster for each mode, and in it one library after the other.
func TestLibraries(t *testing.T) {
	w := startWorld(t)
	for i, mode := range modes(t, w) {
		t.Run(string(mode), func(t *testing.T) {
			c := &scaling.Cluster{
				Name: "libraries-" + string(mode), Mode: mode, Idle: 5,
				Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: mostPods, MaxCPU: mostOfAPod}},
			}
			scalingtest.Create(t, w, c)
			s := scene{w, *c}
			t.Run("Serve", s.serve)
			if i > 0 && !full() {
				return // the same code acts; the first mode shows the rest
			}
			t.Run("Data", s.data)
			t.Run("Tune", s.tune)
			t.Run("Train", s.train)
		})
	}
}

// full says whether the full size is asked for; it takes minutes.
func full() bool { return os.Getenv("RAYFIT_LONG") != "" }

// scene is a cluster in which libraries are tried.
type scene struct {
	w *scaling.World
	c scaling.Cluster
}

// startWorld starts a lab with the operator, Ray and its libraries, and observes it.
func startWorld(t *testing.T) *scaling.World {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return observe(t, lab.Options{
		Nodes: 1, Cores: 16, Memory: "64Gi", Ray: true, Libraries: true, RayfitBinary: binary,
		With: []string{lab.WithOperator},
		// Probes are for pods that serve; here each would start a process a second.
		OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false"},
	})
}

func observe(t *testing.T, options lab.Options) *scaling.World {
	t.Helper()
	return scalingtest.Observe(t, labtest.Start(t, options))
}

// modes are those to try: $RAYFIT_MODES, separated by commas.
func modes(t *testing.T, w *scaling.World) []scaling.Mode {
	t.Helper()
	found := scalingtest.Modes("central,sidecar")
	if slices.Contains(found, scaling.Central) {
		scalingtest.Control(t, w.Lab, "")
	}
	return found
}

// drive starts a driver that knows the functions of libraries.py, and ends with its
// test.
func (s scene) drive(t *testing.T) driver {
	t.Helper()
	return driver{scalingtest.Connect(t, s.c, s.w.Drive)}
}

type driver struct{ *scaling.Driver }

// do runs code, which must succeed, and returns what it calls `value`.
func (d driver) do(t *testing.T, code string) string {
	t.Helper()
	value, err := d.EvalWithin(t.Context(), patience, script+"\n"+code)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (s scene) until(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := s.w.UntilWithin(t.Context(), patience, what, condition); err != nil {
		t.Fatal(err)
	}
}

// atLeast is nil if there are so many workers, which have so many CPUs together.
func (s scene) atLeast(pods, cpus int) error {
	workers, has := s.size()
	if workers < pods || has < cpus {
		return fmt.Errorf("%d workers with %d CPUs instead of %d with %d", workers, has, pods, cpus)
	}
	return nil
}

// exactly is nil if there are just so many workers, which have so many CPUs together.
func (s scene) exactly(pods, cpus int) error {
	if workers, has := s.size(); workers != pods || has != cpus {
		return fmt.Errorf("%d workers with %d CPUs instead of %d with %d", workers, has, pods, cpus)
	}
	return nil
}

// size is how many workers there are, and how many CPUs they have together.
func (s scene) size() (pods, cpus int) {
	for _, pod := range s.w.Workers(s.c, "") {
		limit, _ := pod.Get("status.containerStatuses[0].resources.limits.cpu").(string)
		has, _ := strconv.Atoi(limit) // 0 while its container does not run
		pods, cpus = pods+1, cpus+has
	}
	return pods, cpus
}

// rests waits until nothing is left of what a library needed, and no worker has ended
// by itself.
func (s scene) rests(t *testing.T) {
	t.Helper()
	s.until(t, "no workers any more", func() error { return s.exactly(0, 0) })
	for _, pod := range s.w.EverWorkers(s.c, "") {
		if !pod.Failed.IsZero() {
			t.Errorf("worker %s has ended by itself", pod.Name())
		}
	}
}
