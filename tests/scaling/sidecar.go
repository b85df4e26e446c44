package scaling

import (
	"context"
	"fmt"
	"strconv"
	"syscall"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

// HeadSidecar is a `rayfit sidecar` with the rights of a cluster's head pod, as a
// process of this machine: where pods are on the books only, nothing runs in them.
type HeadSidecar struct {
	name string
	lab  *lab.Lab
	argv []string
}

// StartSidecar starts it, for a cluster whose head there is; it reaches the API
// server at a URL.
func (w *World) StartSidecar(c Cluster, url string) (*HeadSidecar, error) {
	binary, err := rig.Binary()
	if err != nil {
		return nil, err
	}
	head, err := w.Head(c)
	if err != nil {
		return nil, err
	}
	account, _ := head.Get("spec.serviceAccountName").(string)
	kubeconfig, err := credentials(w.Lab, url, account, w.Namespace)
	if err != nil {
		return nil, err
	}
	// As the sidecars of other heads, which are pods of their own elsewhere.
	port, err := lab.HoldPort()
	if err != nil {
		return nil, err
	}
	s := &HeadSidecar{name: "sidecar-" + w.Namespace + "-" + c.Name, lab: w.Lab, argv: []string{
		"/usr/bin/env", "RAY_HEAD_POD_NAME=" + head.Name(), "AUTOSCALER_METRIC_PORT=" + strconv.Itoa(port), binary, "sidecar",
		"--cluster-name=" + c.Name, "--cluster-namespace=" + w.Namespace, "--kubeconfig=" + kubeconfig,
	}}
	return s, s.lab.Run(s.name, s.argv...)
}

// Restart starts it again after Kill, as it was.
func (s *HeadSidecar) Restart(context.Context) error { return s.lab.Run(s.name, s.argv...) }

// Kill ends the process without a word to it.
func (s *HeadSidecar) Kill() error {
	pid := s.lab.PID(s.name)
	if pid == 0 {
		return fmt.Errorf("%s does not run", s.name)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", s.name, err)
	}
	return s.lab.End(s.name, Patience)
}

// Stop ends it as Kubernetes would, if it runs.
func (s *HeadSidecar) Stop() error {
	if s.lab.PID(s.name) == 0 {
		return nil
	}
	return s.lab.End(s.name, Patience)
}

// Log is what it has written.
func (s *HeadSidecar) Log() string {
	text, _ := s.lab.Logs(s.name)
	return text
}
