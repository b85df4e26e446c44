// Command lab starts, inspects and ends a local Kubernetes + KubeRay cluster
// without containers. The package rayfit.dev/rayfit/tests/lab says what it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"rayfit.dev/rayfit/tests/lab"
)

const usage = `lab - a real Kubernetes and KubeRay cluster on this machine, without containers

Usage: lab COMMAND [--dir DIR] [flags]

  up          start a lab and wait until it is ready
  down        end everything that a lab has started
  status      show the components of a lab
  kubeconfig  print the path of the admin's kubeconfig, or one for another user
  kubectl     run kubectl against the lab; everything after the flags is kubectl's
  logs        print a component's log
  exec        run a command inside a pod's container
  restart     restart the API server
  build       build the lab's binaries into the cache

DIR is --dir, else $RAYFIT_LAB_DIR, else ./.work/lab.

Examples:
  lab up --admission-only
  lab up --nodes 1 --cores 8 --memory 16Gi --ray --with operator,certmanager
  lab kubectl get pods -A
  export KUBECONFIG=$(lab kubeconfig)
  lab logs kube-apiserver
  lab down

"lab COMMAND --help" says more.
`

// command is one verb of the command line.
type command struct {
	help string
	run  func(ctx context.Context, flags *flag.FlagSet, args []string) error
}

var commands = map[string]command{
	"up":         {upHelp, up},
	"down":       {downHelp, down},
	"status":     {statusHelp, status},
	"kubeconfig": {kubeconfigHelp, kubeconfig},
	"kubectl":    {kubectlHelp, kubectl},
	"logs":       {logsHelp, logs},
	"exec":       {execHelp, execute},
	"restart":    {restartHelp, restart},
	"build":      {buildHelp, build},
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// dispatch returns the exit code: 0 done, 1 failed, 2 called wrongly.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	if args[0] == lab.ProxyCommand && len(args) == 2 {
		return report(lab.ServeProxy(ctx, args[1]), stderr)
	}
	if args[0] == lab.MachinesCommand && len(args) == 2 {
		return report(lab.ServeMachines(ctx, args[1]), stderr)
	}
	if args[0] == lab.GatewaysCommand && len(args) == 2 {
		return report(lab.ServeGateways(ctx, args[1]), stderr)
	}
	if args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		fmt.Fprint(stdout, usage)
		return 0
	}
	c, known := commands[args[0]]
	if !known {
		fmt.Fprintf(stderr, "lab: no command %q; try lab --help\n", args[0])
		return 2
	}
	flags := flag.NewFlagSet("lab "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, strings.TrimLeft(c.help, "\n"), "\nFlags:\n")
		flags.PrintDefaults()
	}
	return report(c.run(ctx, flags, args[1:]), stderr)
}

// usageError marks a wrong call, as against a failure.
type usageError struct{ error }

// exitError carries the exit code of a command run on the user's behalf.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func report(err error, stderr io.Writer) int {
	var wrong usageError
	var exit exitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &wrong):
		fmt.Fprintln(stderr, "lab:", err)
		return 2
	default:
		fmt.Fprintln(stderr, "lab:", err)
		return 1
	}
}
