// Command kube is the lab's Kubernetes in one binary: etcd, the API server, the
// controller manager, the scheduler, kubectl and a node. One binary links the
// shared code once, which saves minutes of building and a gigabyte of disk.
//
// It acts as the component that its own name or its first argument says.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func(args []string) int{
	"etcd": func(args []string) int { etcdmain.Main(args); return 0 },
	"kube-apiserver": func([]string) int {
		return cli.Run(apiserver.NewAPIServerCommand())
	},
	"kube-controller-manager": func([]string) int {
		return cli.Run(controllermanager.NewControllerManagerCommand())
	},
	"kube-scheduler": func([]string) int {
		return cli.Run(scheduler.NewSchedulerCommand())
	},
	"kubectl": func([]string) int {
		return cli.Run(kubectl.NewDefaultKubectlCommand())
	},
	"node":         func(args []string) int { return report(runNode(args[1:])) },
	containerEntry: func([]string) int { return report(enterContainer()) },
	"with-hosts":   func(args []string) int { return report(withHosts(args[1:])) },
}

func main() {
	args := os.Args
	run, known := components[filepath.Base(args[0])]
	if !known && len(args) > 1 {
		args = args[1:]
		run, known = components[args[0]]
	}
	if !known {
		fmt.Fprintf(os.Stderr, "kube: name a component as the first argument: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, node\n")
		os.Exit(2)
	}
	// The components' commands parse os.Args themselves.
	os.Args = args
	os.Exit(run(args))
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		return 1
	}
	return 0
}
