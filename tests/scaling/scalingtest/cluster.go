package scalingtest

import (
	"context"
	"os"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/scaling"
)

// Create makes a cluster that ends with its test.
func Create(t *testing.T, w *scaling.World, c *scaling.Cluster) {
	t.Helper()
	if err := w.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Not the test's context, which has ended.
		if err := w.Delete(context.Background(), *c); err != nil {
			t.Error(err)
		}
	})
}

// Connect joins a driver to a cluster, which ends with its test.
func Connect(t *testing.T, c scaling.Cluster, join func(context.Context, scaling.Cluster) (*scaling.Driver, error)) *scaling.Driver {
	t.Helper()
	d, err := join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// Modes are those to try: $RAYFIT_MODES, separated by commas, or those of the preset.
func Modes(preset string) []scaling.Mode {
	named := os.Getenv("RAYFIT_MODES")
	if named == "" {
		named = preset
	}
	var found []scaling.Mode
	for _, mode := range strings.Split(named, ",") {
		found = append(found, scaling.Mode(mode))
	}
	return found
}

// Tail is the end of a log.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
