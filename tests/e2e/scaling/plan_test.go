package scaling_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	create(t, w, &c)
	until(t, w, "the head has joined", func() error { return joined(s.played(c), 1) })
	s.played(c).Ask(30, map[string]float64{"CPU": 1})
	// The played GCS may know the head's address before the test does.
	until(t, w, "the head has an address", func() error {
		head, err := w.Head(c)
		if err == nil && head.Get("status.podIP") == nil {
			err = errors.New("it has none")
		}
		return err
	})

	expect(t, w, c, 30)
	expect(t, w, c, 10, "--strategy=ray")
	policy(t, w, "as-ray", `{match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}, names: ["adv*"]}, reconcile: {strategy: ray}}`)
	expect(t, w, c, 10)
	expect(t, w, c, 30, "--strategy=rayfit")
}

// expect checks how many workers a plan has launched at once: Ray's autoscaler
// launches ten at the most.
func expect(t *testing.T, w *scaling.World, c scaling.Cluster, want int, flags ...string) {
	t.Helper()
	head, err := w.Head(c)
	if err != nil {
		t.Fatal(err)
	}
	gcs := net.JoinHostPort(fmt.Sprint(head.Get("status.podIP")), strconv.Itoa(c.Port))
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
