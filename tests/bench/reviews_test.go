package main

import (
	"encoding/json"
	"testing"

	"rayfit.dev/rayfit/tests/tables"
)

func TestReviewsAreAsLongAsTheirNamesSay(t *testing.T) {
	all, err := reviews()
	if err != nil {
		t.Fatal(err)
	}
	for n, review := range all {
		want := sizes[n/2%len(sizes)].bytes // the last one is small again
		if got := len(review.body); got < want*97/100 || got > want*103/100 {
			t.Errorf("%s: %d bytes, want about %d", review.name, got, want)
		}
		if !json.Valid(review.body) {
			t.Errorf("%s: no JSON", review.name)
		}
	}
}

func TestReplacedKeepsThePageAroundTheMarkers(t *testing.T) {
	page, err := tables.Replaced("a\n"+begin+"\nold\n"+end+"\nb\n", begin, end, "new")
	if want := "a\n" + begin + "\n\nnew\n" + end + "\nb\n"; err != nil || page != want {
		t.Errorf("got %q, %v; want %q", page, err, want)
	}
	if _, err := tables.Replaced("no markers", begin, end, "new"); err == nil {
		t.Error("a page without markers was accepted")
	}
}

func TestMedian(t *testing.T) {
	r := results{of: map[string][]figures{ours: {{idleMiB: 3}, {idleMiB: 1}, {idleMiB: 9}, {idleMiB: 2}}}}
	if got := r.median(ours, func(f figures) float64 { return f.idleMiB }); got != 2.5 {
		t.Errorf("median of 3, 1, 9, 2 is %v, want 2.5", got)
	}
}
