package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
)

// What is warned of costs more than what is not, and a run refuses to measure it.
func TestRayfitHasNothingToSayAgainstWhatIsSent(t *testing.T) {
	all, err := reviews()
	if err != nil {
		t.Fatal(err)
	}
	for _, review := range all[:4] { // those of 700 KB have more of the same
		var sent struct {
			Request struct {
				Object json.RawMessage `json:"object"`
			} `json:"request"`
		}
		if err := json.Unmarshal(review.body, &sent); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "object.json")
		if err := os.WriteFile(file, sent.Request.Object, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := rig.Output(t.Context(), "check", file); err != nil || strings.Contains(said, "RF") {
			t.Errorf("%s: %v\n%s", review.name, err, said)
		}
	}
}
