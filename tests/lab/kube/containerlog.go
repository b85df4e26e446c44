package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// containerLog writes a container's output in the CRI's log format, which the
// kubelet reads for kubectl logs.
type containerLog struct {
	mu      sync.Mutex
	file    *os.File
	writers []*io.PipeWriter
	copying sync.WaitGroup
}

func newContainerLog(path string) (*containerLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the container's log: %w", err)
	}
	return &containerLog{file: file}, nil
}

// stream returns a writer whose lines get time and stream name in front.
func (l *containerLog) stream(name string) io.Writer {
	reader, writer := io.Pipe()
	l.writers = append(l.writers, writer)
	l.copying.Go(func() {
		lines := bufio.NewReader(reader)
		for {
			line, partial, err := lines.ReadLine()
			if err != nil {
				return
			}
			l.write(name, line, partial)
		}
	})
	return writer
}

func (l *containerLog) write(stream string, line []byte, partial bool) {
	tag := "F"
	if partial {
		tag = "P"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.file, "%s %s %s %s\n", time.Now().Format(time.RFC3339Nano), stream, tag, line)
}

func (l *containerLog) Close() error {
	var failed []error
	for _, writer := range l.writers {
		failed = append(failed, writer.Close())
	}
	l.copying.Wait()
	return errors.Join(append(failed, l.file.Close())...)
}
