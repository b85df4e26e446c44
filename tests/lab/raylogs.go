package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// longestRayLog is how much of the end of each of Ray's logs is read.
const longestRayLog = 8 << 10

// rayLogs are the logs that say what became of a task that waits, in the order in which
// they are read: what Ray's processes print, and last the states that raylets write
// down every ten seconds.
var rayLogs = []string{"gcs_server.out", "raylet.err", "worker-*.err", "raylet.out", "debug_state.txt"}

// RayLogs are the ends of the logs of every Ray that is running in the lab's containers,
// one text for each session directory. Where RAYFIT_KEEP names a directory, the logs are
// copied into it whole.
func (l *Lab) RayLogs() []string {
	var texts []string
	// The pattern is well-formed, which is all that could be wrong.
	sessions, _ := filepath.Glob(l.path("nodes", "*", "containers", "*", "tmp", "ray", "session_2*", "logs"))
	for i, session := range sessions {
		var text strings.Builder
		fmt.Fprintf(&text, "Ray's logs in %s\n", strings.TrimPrefix(session, l.options.Dir+"/"))
		for _, pattern := range rayLogs {
			files, _ := filepath.Glob(filepath.Join(session, pattern))
			for _, file := range files {
				end, err := endOf(file)
				if err != nil {
					end = err.Error()
				}
				if end != "" {
					fmt.Fprintf(&text, "--- the end of %s\n%s\n", filepath.Base(file), end)
				}
			}
		}
		if kept := os.Getenv("RAYFIT_KEEP"); kept != "" {
			where := filepath.Join(kept, fmt.Sprintf("%s-%d", filepath.Base(l.options.Dir), i))
			fmt.Fprintf(&text, "kept in %s: %v\n", where, os.CopyFS(where, os.DirFS(session)))
		}
		texts = append(texts, text.String())
	}
	return texts
}

// endOf is the end of a log, and "" of one that is not there (any more).
func endOf(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open a log of Ray's: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("look at a log of Ray's: %w", err)
	}
	read := io.NewSectionReader(file, max(0, info.Size()-longestRayLog), longestRayLog)
	end, err := io.ReadAll(read)
	if err != nil {
		return "", fmt.Errorf("read a log of Ray's: %w", err)
	}
	return strings.ToValidUTF8(string(end), "?"), nil
}
