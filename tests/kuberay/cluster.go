package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// options are what a run was asked for.
type options struct {
	rayfit, folder, only string
	suites               []string
	atOnce               int
	progress             io.Writer
	without              []string // tests for which something is missing
}

// try runs the suites where clusters are scaled in a mode.
func (o *options) try(ctx context.Context, mode scaling.Mode, found *results) (err error) {
	l, end, err := labtest.New(ctx, lab.Options{
		// On the books only, so that what the tests ask for fits.
		Nodes: 1, Cores: 256, Memory: "1Ti", PodNetwork: true, Ray: true, Serve: true, Redis: true,
		Outside: o.outside(ctx),
		With:    []string{lab.WithOperator, lab.WithGateway},
		// Unlike the lab's other users: what the operator does by itself.
		OperatorEnv: []string{"ENABLE_INIT_CONTAINER_INJECTION=true"},
		// Without it the operator does not know the type of e2eincrementalupgrade.
		OperatorArgs: []string{"--feature-gates=RayServiceIncrementalUpgrade=true"},
		RayfitBinary: o.rayfit,
	})
	if err != nil {
		return err
	}
	defer func() {
		o.keepLogs(l, mode)
		if ended := end(); err == nil {
			err = ended
		}
	}()
	if mode != scaling.Ray {
		if err := o.install(ctx, l, mode); err != nil {
			return err
		}
	}
	for _, name := range o.suites {
		s, err := openSuite(ctx, name)
		if err != nil {
			return err
		}
		if err := o.runSuite(ctx, l, s, mode, found); err != nil {
			return err
		}
	}
	return nil
}

// install installs Rayfit as its documentation says, and a policy by which every
// cluster has the mode.
func (o *options) install(ctx context.Context, l *lab.Lab, mode scaling.Mode) error {
	if err := os.Setenv("RAYFIT_BIN", o.rayfit); err != nil {
		return fmt.Errorf("name the binary: %w", err)
	}
	manifests, err := rig.Output(ctx, "manifests")
	if err != nil {
		return err
	}
	if _, _, err := l.Apply(manifests); err != nil {
		return err
	}
	for _, deployment := range []string{"rayfit", "rayfit-controller"} {
		if _, _, err := l.Kubectl("rollout", "status", "deployment/"+deployment, "-n", system, "--timeout=180s"); err != nil {
			return err
		}
	}
	if _, _, err := l.Apply(fmt.Sprintf(policy, mode)); err != nil {
		return err
	}
	return lab.Eventually(ctx, scaling.Patience, "a RayCluster gets the mode of the policy", func() error {
		cluster := rig.RayCluster("default", "probe").YAML()
		cmd := l.KubectlCommand(ctx, "create", "--dry-run=server", "-o", `jsonpath={.metadata.annotations.rayfit\.dev/reconcile}`, "-f", "-")
		cmd.Stdin = strings.NewReader(cluster)
		said, err := cmd.Output()
		if err != nil || string(said) != string(mode) {
			return fmt.Errorf("it has %q instead of %q (%v)", said, mode, err)
		}
		return nil
	})
}

// policy has the mode for every cluster. Two cases store an object whose name is too
// long, to see the operator refuse it: the rule that would deny it only warns.
const policy = `apiVersion: rayfit.dev/v1alpha1
kind: RayPolicy
metadata: {name: everything}
spec: {rules: {RF224: Warn}, reconcile: {mode: %s}}
`

// system is the namespace of an install.
const system = "rayfit-system"

// keepLogs keeps what the lab's parts and Rayfit have said.
func (o *options) keepLogs(l *lab.Lab, mode scaling.Mode) {
	target := filepath.Join(o.folder, "lab-"+string(mode))
	if os.RemoveAll(target) != nil || os.CopyFS(target, os.DirFS(filepath.Join(l.Dir(), "logs"))) != nil {
		return
	}
	if said, _, err := l.Kubectl("logs", "-n", system, "-l", "app.kubernetes.io/name=rayfit", "--prefix", "--tail=-1"); err == nil {
		_ = os.WriteFile(filepath.Join(target, "rayfit.log"), []byte(said), 0o644)
	}
}
