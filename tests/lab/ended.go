package lab

import (
	"fmt"
	"os"
	"path/filepath"
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
		records = append(records, string(record))
	}
	return records
}
