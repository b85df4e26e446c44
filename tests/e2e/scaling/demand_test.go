package scaling_test

import (
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
)

func TestFirst(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "64Gi", Ray: true})
	c := &scaling.Cluster{Name: "a", Mode: scaling.Ray, Idle: 5, Groups: []scaling.Group{{Name: "small", CPU: 1, Max: 4}}}
	d := drive(t, w, c)
	do(t, d, `hold("one", 2, num_cpus=1)`)
	until(t, w, "two at work", func() error { return w.Board.AtWork("one", 2) })
	t.Log(w.Board.Tasks("one"))
	w.Board.Release("one")
	until(t, w, "scaled down", func() error { return w.HasWorkers(*c, "", 0) })
}
