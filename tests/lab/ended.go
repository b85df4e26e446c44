package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Ended are the records of containers that ended by themselves, with an error: their
// last words, and Ray's. The lab's nodes write them. The namespace and the pod are
// names, or "*" for all.
func (l *Lab) Ended(namespace, pod string) []string {
	var records []string
	// The pattern is well-formed, which is all that could be wrong.
	paths, _ := filepath.Glob(l.path("nodes", "*", "ended", namespace+"_"+pod+"_*.log"))
	for _, path := range paths {
		record, err := os.ReadFile(path)
		if err != nil {
			record = fmt.Appendf(nil, "%v", err)
		}
		records = append(records, withLastWords(string(record)))
	}
	return records
}

// withLastWords puts the last line of the container's own log, which is the first of the
// logs, behind what the record begins with: a list of failures has room for one line of each.
func withLastWords(record string) string {
	head, logs, _ := strings.Cut(record, "\n")
	own := strings.SplitN(logs, "--- the end of ", 3)
	if len(own) < 2 {
		return record
	}
	lines := strings.Split(strings.TrimSpace(own[1]), "\n")
	last := lines[len(lines)-1]
	// As the runtime writes it: the time, the stream, F for a full line.
	if _, words, tagged := strings.Cut(last, " F "); tagged {
		last = words
	}
	return head + ": " + last + "\n" + logs
}
