// Package scaling_test shows that Rayfit scales and resizes real Ray clusters:
// KubeRay's operator, Kubernetes' scheduler and kubelet, and Ray are the real
// ones. The same scenarios run with Ray's own autoscaler (RAYFIT_MODES=ray).
package scaling_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// startWorld starts a lab with the operator and Ray in it, which ends with its
// test, and observes it.
func startWorld(t *testing.T, options lab.Options) *scaling.World {
	t.Helper()
	options.With = []string{lab.WithOperator}
	// Probes are for pods that serve; here each would start a process a second.
	options.OperatorEnv = []string{"ENABLE_PROBES_INJECTION=false"}
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	options.RayfitBinary = binary
	return scalingtest.Observe(t, labtest.Start(t, options))
}

// stage is a lab whose pods are on the books only, with a played GCS for every
// cluster and a proxy that can make the API server fail. Tests share one.
type stage struct {
	*scaling.World
	gcs   *playgcs.Server
	proxy *faulty.Proxy
	// audience is told of every change of a played GCS.
	audience *audience
}

// audience are the worlds of all namespaces in which somebody waits for something.
type audience struct {
	sync.Mutex
	worlds []*scaling.World
}

func (a *audience) look() {
	a.Lock()
	defer a.Unlock()
	for _, w := range a.worlds {
		w.Notify()
	}
}

// in is the stage in a namespace of a tenant's own, which ends with its test.
func (s *stage) in(t *testing.T, namespace string) *stage {
	t.Helper()
	kubectlAt(t, s, "create", "namespace", namespace)
	t.Cleanup(func() { kubectlAt(t, s, "delete", "namespace", namespace, "--wait=false") })
	err := lab.Eventually(t.Context(), scaling.Patience, "pods can be made in namespace "+namespace, func() error {
		_, err := s.Lab.Request(t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := scaling.ObserveIn(context.Background(), s.Lab, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	s.audience.Lock()
	defer s.audience.Unlock()
	s.audience.worlds = append(s.audience.worlds, w)
	return &stage{w, s.gcs, s.proxy, s.audience}
}

var shared struct {
	sync.Once
	stage *stage
	end   []func()
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range slices.Backward(shared.end) {
		end()
	}
	os.Exit(code)
}

func played(t *testing.T) *stage {
	t.Helper()
	shared.Do(func() { shared.stage, shared.err = newStage() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stage
}

func newStage() (*stage, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l, end, err := labtest.New(ctx, lab.Options{Nodes: 1 + most()/200, Cores: 256, Memory: "1Ti", Workloads: lab.NoProcesses, With: []string{lab.WithOperator}})
	if err != nil {
		cancel()
		return nil, err
	}
	shared.end = append(shared.end, func() { _ = end() }, cancel)
	w, err := scaling.Observe(ctx, l)
	if err != nil {
		return nil, err
	}
	shared.end = append(shared.end, w.Close)
	seats := &audience{worlds: []*scaling.World{w}}
	gcs := playgcs.New(seats.look)
	shared.end = append(shared.end, gcs.Stop)
	go gcs.Follow(ctx, l)
	proxy, err := faulty.Start(l)
	if err != nil {
		return nil, err
	}
	shared.end = append(shared.end, proxy.Stop)
	return &stage{w, gcs, proxy, seats}, nil
}

// played is the played Ray of a cluster.
func (s *stage) played(c scaling.Cluster) *playgcs.Cluster {
	return s.gcs.Cluster(s.Namespace + "/" + c.Name)
}

// begin makes a cluster that ends with its test, and waits until its head has
// joined the played Ray.
func (s *stage) begin(t *testing.T, c *scaling.Cluster) *playgcs.Cluster {
	t.Helper()
	scalingtest.Create(t, s.World, c)
	ray := s.played(*c)
	until(t, s.World, "the head has joined", func() error { return joined(ray, 1) })
	return ray
}

// control starts a controller behind a stage's proxy, which ends with its test.
func (s *stage) control(t *testing.T, proxy *faulty.Proxy) *scaling.Controller {
	t.Helper()
	controller, err := scaling.StartController(t.Context(), s.Lab, proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the controller's log:\n%s", scalingtest.Tail(controller.Log(), 40))
		}
		if controller.PID() != 0 {
			_ = controller.Stop()
		}
	})
	return controller
}

// sidecar starts the scaler of a cluster's head pod, which ends with its test.
func (s *stage) sidecar(t *testing.T, c scaling.Cluster) *scaling.HeadSidecar {
	t.Helper()
	// It is in the head's pod, and asks the GCS there.
	local := fmt.Sprintf("127.0.0.1:%d", c.Port)
	if err := s.gcs.Serve(s.played(c), local); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.gcs.Silence(local) })
	sidecar, err := s.StartSidecar(c, s.proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the sidecar's log:\n%s", scalingtest.Tail(sidecar.Log(), 40))
		}
		if err := sidecar.Stop(); err != nil {
			t.Error(err)
		}
	})
	return sidecar
}

// drive makes a cluster and a driver in it, both of which end with their test.
func drive(t *testing.T, w *scaling.World, c *scaling.Cluster) *scaling.Driver {
	t.Helper()
	return driven(t, w, c, w.Drive)
}

// driven is drive with a driver of some kind.
func driven(t *testing.T, w *scaling.World, c *scaling.Cluster, join func(context.Context, scaling.Cluster) (*scaling.Driver, error)) *scaling.Driver {
	t.Helper()
	scalingtest.Create(t, w, c)
	return scalingtest.Connect(t, *c, join)
}

// do runs code in a driver, which must succeed.
func do(t *testing.T, d *scaling.Driver, code string) {
	t.Helper()
	if err := d.Do(t.Context(), code); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition, which must come true.
func until(t *testing.T, w *scaling.World, what string, condition func() error) {
	t.Helper()
	if err := w.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}

// both are the modes of a test that tries each of them whether RAYFIT_LONG is set or not.
const both = scaling.Mode("central,sidecar")

// modes are those to try: $RAYFIT_MODES, separated by commas; without it those that the
// test names, or both of Rayfit's where RAYFIT_LONG is set.
func modes(t *testing.T, w *scaling.World, brief scaling.Mode) []scaling.Mode {
	t.Helper()
	if full() {
		brief = both
	}
	found := scalingtest.Modes(string(brief))
	if slices.Contains(found, scaling.Central) {
		if _, err := scaling.StartController(t.Context(), w.Lab, ""); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// inEachMode runs a test for all modes that are to be tried at once, each in a cluster
// of its own.
func inEachMode(t *testing.T, w *scaling.World, brief scaling.Mode, try func(*testing.T, scaling.Mode)) {
	t.Helper()
	for _, mode := range modes(t, w, brief) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			try(t, mode)
		})
	}
}

// edit changes a number of a worker group.
func edit(t *testing.T, w *scaling.World, c scaling.Cluster, group, field string, value int) {
	t.Helper()
	for i, g := range c.Groups {
		if g.Name == group {
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/workerGroupSpecs/%d/%s","value":%d}]`, i, field, value)
			if _, _, err := w.Lab.Kubectl("patch", "raycluster", c.Name, "-n", w.Namespace, "--type=json", "--patch", patch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// idle changes for how many seconds workers may be idle.
func idle(t *testing.T, w *scaling.World, c scaling.Cluster, seconds int) {
	t.Helper()
	if err := w.Patch(t.Context(), c, rig.Object{}.Set("spec.autoscalerOptions.idleTimeoutSeconds", seconds)); err != nil {
		t.Fatal(err)
	}
}

func upscaling(t *testing.T, w *scaling.World, c scaling.Cluster, mode string) {
	t.Helper()
	if err := w.Patch(t.Context(), c, rig.Object{}.Set("spec.autoscalerOptions.upscalingMode", mode)); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl, which must succeed, and returns its output.
func kubectl(t *testing.T, w *scaling.World, args ...string) string {
	t.Helper()
	return labtest.Kubectl(t, w.Lab, append(args, "-n", w.Namespace)...)
}

func annotate(name, value string) rig.Object {
	return rig.Object{}.Set("metadata.annotations["+name+"]", value)
}
