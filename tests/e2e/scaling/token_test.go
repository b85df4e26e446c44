package scaling_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

// TestTokens scales clusters whose Ray answers only who shows a token: out, in
// place, and in. The central controller gets the right to read it while it runs.
func TestTokens(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "64Gi", Ray: true})
	inEachMode(t, w, scaling.Central, func(t *testing.T, mode scaling.Mode) { withToken(t, w, mode) })
}

func withToken(t *testing.T, w *scaling.World, mode scaling.Mode) {
	c := &scaling.Cluster{Name: string(mode), Mode: mode, Idle: 2, Token: true, Groups: []scaling.Group{
		{Name: "grow", CPU: 1, Max: 1, MaxCPU: 2},
	}}
	d := drive(t, w, c)
	do(t, d, `hold("two", 2, num_cpus=1)`)
	if mode == scaling.Central {
		until(t, w, "what is missing is said", func() error { return w.Said(c.Name, "NotObserved", "installed with --ray-auth") })
		if made := w.Made(*c, ""); made > 0 {
			t.Errorf("%d workers were made by who may not see the demand", made)
		}
		if err := scaling.AllowSecrets(t.Context(), w.Lab); err != nil {
			t.Fatal(err)
		}
	}
	until(t, w, "both tasks at work", func() error { return w.TaskGate.AtWork(batch(*c, "two"), 2) })
	if made := w.Made(*c, ""); made != 1 {
		t.Errorf("%d workers were made in mode %s for a group of one that may grow", made, mode)
	}
	w.TaskGate.Release(batch(*c, "two"))
	until(t, w, "the idle worker goes", func() error { return w.HasWorkers(*c, "", 0) })
	token := kubectl(t, w, "get", "secret", c.Name, "-o", "jsonpath={.data.auth_token}")
	if token == "" {
		t.Error("the cluster has no token, so nothing was shown")
	}
}
