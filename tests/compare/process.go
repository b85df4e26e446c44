package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// autoscalerOf is the process in a cluster's autoscaler container: of those with
// KubeRay's command line the largest, as a shell may stand in front of it.
func autoscalerOf(c scaling.Cluster, dir string) (int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	found, most := 0, 0.0
	for _, entry := range entries {
		process := filepath.Dir(entry)
		environ, _ := os.ReadFile(entry)
		if !bytes.Contains(environ, []byte("RAY_CLUSTER_NAME="+c.Name+"\x00")) || !bytes.Contains(environ, []byte("="+dir+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if !bytes.Contains(line, []byte("kuberay-autoscaler")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		if held, err := rig.Memory(pid, "VmRSS"); err == nil && held > most {
			found, most = pid, held
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("no autoscaler process of %s", c.Name)
	}
	return found, nil
}
