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
var rayLogs = []string{"gcs_server.out", "raylet.err", "worker-*.err", "raylet.out", "log_monitor.log", "events/event_AUTOSCALER.log", "debug_state.txt"}

// RayLogs are the ends of the logs of every Ray that is running in the lab's containers,
// one text for each session directory. Where RAYFIT_KEEP names a directory, the logs are
// copied into it whole.
func (l *Lab) RayLogs() []string {
	var texts []string
	for i, session := range l.raySessions() {
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

// raySessions are the folders of logs of all Rays: in a container's own /tmp, or in the
// volume that a head shares with its autoscaler.
func (l *Lab) raySessions() []string {
	var sessions []string
	for _, ray := range [][]string{
		{"containers", "*", "tmp", "ray"},
		{"kubelet", "pods", "*", "volumes", "kubernetes.io~empty-dir", "*"},
	} {
		// The pattern is well-formed, which is all that could be wrong.
		found, _ := filepath.Glob(l.path(append(append([]string{"nodes", "*"}, ray...), "session_2*", "logs")...))
		sessions = append(sessions, found...)
	}
	return sessions
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
