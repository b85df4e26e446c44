package scaling_test

import (
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestPlanOfALiveCluster: `rayfit plan NAMESPACE/NAME` decides as the controller
// would, policies included, and as flags say where they are given.
func TestPlanOfALiveCluster(t *testing.T) {
	s := played(t)
	s.control(t, s.proxy)
	w := s.World
	// Nobody but Ray's autoscaler may scale it, and nothing runs in its pods.
	c := scaling.Cluster{Name: "advised", Mode: scaling.Ray, Idle: 3600, Groups: []scaling.Group{{Name: "cpu", CPU: 1, Max: 100}}}
	s.begin(t, &c).Ask(30, map[string]float64{"CPU": 1})
	var gcs string
	// The played GCS may know the head's address before the test does.
	until(t, w, "the head has an address", func() error {
		head, err := w.Head(c)
		if err != nil {
			return err
		}
		address, ok := head.Get("status.podIP").(string)
		if !ok {
			return errors.New("it has none")
		}
		gcs = net.JoinHostPort(address, strconv.Itoa(c.Port))
		return nil
	})

	expect(t, w, c, gcs, 30)
	expect(t, w, c, gcs, 10, "--strategy=ray")
	policy(t, w, "as-ray", `{match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}, names: ["adv*"]}, reconcile: {strategy: ray}}`)
	expect(t, w, c, gcs, 10)
	expect(t, w, c, gcs, 30, "--strategy=rayfit")
}

// expect checks how many workers a plan has launched at once: Ray's autoscaler
// launches ten at the most.
func expect(t *testing.T, w *scaling.World, c scaling.Cluster, gcs string, want int, flags ...string) {
	t.Helper()
	args := append([]string{"plan", scaling.Namespace + "/" + c.Name, "--output=json", "--kubeconfig=" + w.Lab.Kubeconfig(), "--gcs-address=" + gcs}, flags...)
	said, err := rig.Output(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	var line struct {
		Plan struct {
			Groups []struct{ LaunchNow int }
		}
	}
	if err := json.Unmarshal([]byte(said), &line); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if len(line.Plan.Groups) != 1 || line.Plan.Groups[0].LaunchNow != want {
		t.Errorf("%v: %s, want %d launched now", flags, said, want)
	}
}
