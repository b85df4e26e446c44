package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"rayfit.dev/rayfit/tests/lab"
)

const (
	upHelp = `
Start a lab and wait until it is ready. It stays until "lab down".
The first time this builds Kubernetes from its Go modules, which takes minutes.

Examples:
  lab up --admission-only                                 etcd, API server, controller manager, KubeRay CRDs
  lab up --nodes 2 --cores 8 --memory 16Gi --ray --with operator
  lab up --nodes 50 --workloads none --with operator      containers without processes
`
	downHelp = `
End everything that a lab has started, also one whose start was interrupted.
Files and logs stay in the directory.

Example:
  lab down --dir /tmp/lab
`
	statusHelp = `
Show the components of a lab with their process ids. Exit code 1 if one that
was started is not running.

Example:
  lab status
`
	kubeconfigHelp = `
Print the path of the admin's kubeconfig; with --user, make one for that user.

Examples:
  export KUBECONFIG=$(lab kubeconfig)
  lab kubeconfig --user alice --groups team-a,team-b
`
	kubectlHelp = `
Run the lab's kubectl as admin.

Examples:
  lab kubectl get pods -A
  lab kubectl --dir /tmp/lab -- apply -f raycluster.yaml
`
	logsHelp = `
Print a component's log, or list the components if none is named. Containers'
logs come from "lab kubectl logs".

Example:
  lab logs operator
`
	execHelp = `
Run a command inside a container, as "kubectl exec" does.

Example:
  lab exec demo-head -- ray status
`
	restartHelp = `
Restart the API server on the same port with the same data.

Example:
  lab restart
`
	buildHelp = `
Build binaries into the cache and print their paths; without names, all but
"ray-libraries", which only the longest tests need. "ray" is the virtual environment
with Ray, "ray-libraries" that with its libraries too; the path is that of the bin folder. With --missing nothing is built: what the cache
lacks is printed, and how long it takes.

Examples:
  lab build kube
  lab build --missing kube operator ray
  $(lab build ray)/ray --version
`
)

func up(ctx context.Context, flags *flag.FlagSet, args []string) error {
	o := lab.Options{Detach: true, Progress: os.Stderr}
	dir := dirFlag(flags)
	flags.BoolVar(&o.AdmissionOnly, "admission-only", false, "no scheduler, nodes or add-ons")
	flags.IntVar(&o.Nodes, "nodes", -1, "number of nodes (1, or 0 with --admission-only)")
	flags.IntVar(&o.Cores, "cores", 8, "cores that each node reports")
	flags.StringVar(&o.Memory, "memory", "16Gi", "memory that each node reports")
	with := flags.String("with", "", "add-ons, separated by commas: operator, certmanager, kueue, vpa, karpenter, gateway")
	workloads := flags.String("workloads", string(lab.Processes), "what containers are: process, or none for books only")
	flags.BoolVar(&o.PodNetwork, "pod-network", false, "a network namespace for each pod, on one node")
	flags.BoolVar(&o.Redis, "redis", false, "redis-server and redis-cli on the PATH of containers")
	flags.BoolVar(&o.Ray, "ray", false, "real Ray on the PATH of Ray containers")
	flags.BoolVar(&o.Libraries, "libraries", false, "with --ray: what Ray Serve, Data, Tune and Train need, too")
	flags.StringVar(&o.RayfitBinary, "rayfit-binary", "", "what runs for images whose name contains rayfit")
	flags.BoolVar(&o.OperatorWebhooks, "operator-webhooks", false, "the operator's own webhook on 127.0.0.1:9443, for comparisons")
	audit := flags.String("audit", "", "audit log of the API server: Metadata or Request")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	o.Dir, o.Workloads, o.Audit = *dir, lab.Workloads(*workloads), lab.AuditLevel(*audit)
	if *with != "" {
		o.With = strings.Split(*with, ",")
	}
	if o.Nodes < 0 {
		o.Nodes = 1
		if o.AdmissionOnly {
			o.Nodes = 0
		}
	}
	l, err := lab.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", l.Kubeconfig())
	return nil
}

func down(_ context.Context, flags *flag.FlagSet, args []string) error {
	dir := dirFlag(flags)
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	return lab.Down(*dir)
}

func status(_ context.Context, flags *flag.FlagSet, args []string) error {
	l, err := open(flags, args, 0)
	if err != nil {
		return err
	}
	var failed bool
	for _, name := range l.Components() {
		if pid := l.PID(name); pid != 0 {
			fmt.Printf("%-26s running, pid %d\n", name, pid)
		} else {
			failed = true
			fmt.Printf("%-26s ENDED, see %s\n", name, l.LogFile(name))
		}
	}
	if failed {
		return exitError(1)
	}
	return nil
}

func kubeconfig(_ context.Context, flags *flag.FlagSet, args []string) error {
	user := flags.String("user", "", "make a kubeconfig for this user")
	groups := flags.String("groups", "", "the user's groups, separated by commas")
	l, err := open(flags, args, 0)
	if err != nil {
		return err
	}
	path := l.Kubeconfig()
	if *user != "" {
		var list []string
		if *groups != "" {
			list = strings.Split(*groups, ",")
		}
		if path, err = l.KubeconfigFor(*user, list...); err != nil {
			return err
		}
	}
	fmt.Println(path)
	return nil
}

func kubectl(ctx context.Context, flags *flag.FlagSet, args []string) error {
	l, err := open(flags, args, -1)
	if err != nil {
		return err
	}
	return attached(l.KubectlCommand(ctx, flags.Args()...))
}

func execute(ctx context.Context, flags *flag.FlagSet, args []string) error {
	namespace := flags.String("namespace", "default", "the pod's namespace")
	container := flags.String("container", "", "the container; the pod's first if empty")
	l, err := open(flags, args, -1)
	if err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return usageError{errors.New("name a pod and a command: lab exec POD -- COMMAND")}
	}
	rest := flags.Args()[1:]
	if rest[0] == "--" {
		rest = rest[1:]
	}
	call := []string{"exec", "--namespace", *namespace, flags.Arg(0)}
	if *container != "" {
		call = append(call, "--container", *container)
	}
	return attached(l.KubectlCommand(ctx, append(append(call, "--"), rest...)...))
}

func logs(_ context.Context, flags *flag.FlagSet, args []string) error {
	l, err := open(flags, args, -1)
	if err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usageError{fmt.Errorf("name one of: %s", strings.Join(l.Components(), ", "))}
	}
	text, err := l.Logs(flags.Arg(0))
	fmt.Print(text)
	return err
}

func restart(ctx context.Context, flags *flag.FlagSet, args []string) error {
	l, err := open(flags, args, 0)
	if err != nil {
		return err
	}
	return l.RestartAPIServer(ctx)
}

func build(ctx context.Context, flags *flag.FlagSet, args []string) error {
	missing := flags.Bool("missing", false, "build nothing, print what the cache lacks")
	if err := parse(flags, args, -1); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = lab.UsualBinaries()
	}
	for _, name := range names {
		say := lab.Missing
		if !*missing {
			say = func(ctx context.Context, name string) (string, error) { return lab.Build(ctx, name, os.Stderr) }
		}
		line, err := say(ctx, name)
		if err != nil {
			return err
		}
		if line != "" {
			fmt.Println(line)
		}
	}
	return nil
}

func dirFlag(flags *flag.FlagSet) *string {
	dir := os.Getenv("RAYFIT_LAB_DIR")
	if dir == "" {
		dir = ".work/lab"
	}
	return flags.String("dir", dir, "the lab's directory")
}

// parse reads flags and refuses more than positional arguments; -1 allows any.
func parse(flags *flag.FlagSet, args []string, positional int) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if positional >= 0 && flags.NArg() > positional {
		return usageError{fmt.Errorf("unexpected argument %q", flags.Arg(positional))}
	}
	return nil
}

func open(flags *flag.FlagSet, args []string, positional int) (*lab.Lab, error) {
	dir := dirFlag(flags)
	if err := parse(flags, args, positional); err != nil {
		return nil, err
	}
	return lab.Open(*dir)
}

// attached runs a command on our terminal and passes its exit code on.
func attached(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitError(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	return nil
}
