package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A container that ended by itself, with an error, is soon removed with its pod, by
// KubeRay and the kubelet. What it has left is kept then, so that a test that fails
// can say why: its log, and of Ray's logs those that tell why a node of it ended.
const (
	mostRecords = 50       // of a node; a container that ends again and again must not fill the disk
	longestTail = 12 << 10 // of each log: why something ended is written at its end, before two stack traces
)

// rayLogs are where Ray writes in its container, seen from the container's /tmp.
var rayLogs = []string{
	"raylet.out", "raylet.err", "dashboard_agent.log", "runtime_env_agent.log",
	"agent-*.err", "runtime_env_agent.err", "gcs_server.out", "gcs_server.err",
}

// keepRecord writes the record of a container that has ended by itself.
func (r *processRuntime) keepRecord(c *container, code int32) error {
	if err := os.MkdirAll(r.records, 0o755); err != nil {
		return fmt.Errorf("make the directory of containers that ended: %w", err)
	}
	kept, err := os.ReadDir(r.records)
	if err != nil {
		return fmt.Errorf("list the containers that ended: %w", err)
	}
	if len(kept) >= mostRecords {
		return nil
	}
	pod := c.sandbox.GetMetadata()
	name := fmt.Sprintf("%s_%s_%s.log", pod.GetNamespace(), pod.GetName(), c.config.GetMetadata().GetName())
	record, err := os.Create(filepath.Join(r.records, name))
	if err != nil {
		return fmt.Errorf("make a record of a container that ended: %w", err)
	}
	_, err = fmt.Fprintf(record, "container %s of pod %s ended by itself with exit code %d\n",
		c.config.GetMetadata().GetName(), pod.GetName(), code)
	err = errors.Join(err, copyTail(record, c.logPath))
	for _, pattern := range rayLogs {
		// Not session_latest, which is a link that holds in the container only.
		files, _ := filepath.Glob(filepath.Join(c.dir, "tmp", "ray", "session_2*", "logs", pattern))
		for _, file := range files {
			err = errors.Join(err, copyTail(record, file))
		}
	}
	return errors.Join(err, record.Close())
}

// copyTail copies the end of a log under its name. A log that is not there is left out.
func copyTail(to io.Writer, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open a log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("look at a log: %w", err)
	}
	if info.Size() == 0 {
		return nil
	}
	if _, err := file.Seek(max(0, info.Size()-longestTail), io.SeekStart); err != nil {
		return fmt.Errorf("find the end of a log: %w", err)
	}
	if _, err := fmt.Fprintf(to, "--- the end of %s\n", filepath.Base(path)); err != nil {
		return err
	}
	if _, err := io.Copy(to, io.LimitReader(file, longestTail)); err != nil {
		return fmt.Errorf("copy the end of a log: %w", err)
	}
	_, err = fmt.Fprintln(to)
	return err
}
