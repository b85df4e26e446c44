package tables

import (
	"regexp"
	"testing"
)

func TestCommitIsNamed(t *testing.T) {
	said, err := Commit()
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("^commit `[0-9a-f]{8}`( with changes)?$").MatchString(said) {
		t.Errorf("got %q", said)
	}
}
