// Package lab runs a real Kubernetes and KubeRay cluster on one machine without
// containers, for tests, demos and benchmarks.
//
// etcd, the API server, the controller manager, the scheduler, the kubelet's
// code, the KubeRay operator, cert-manager and Ray are the real ones, built
// from Go modules and PyPI. What is played is what a container runtime and a
// network plug-in would do: a container is a group of host processes with a
// private view of its volumes, a pod's address is a loopback address or, with
// [Options].PodNetwork, that of a network namespace of its own, and a small proxy
// stands in for kube-proxy between the API server and webhooks.
//
// Reading order: [Options] and [Start] in options.go and lab.go; the control
// plane in controlplane.go; how processes are started and surely ended in
// process.go and procfs.go; the build cache in cache.go and build.go; the
// service proxy in proxy.go, route.go and store.go.
//
// A test reads like this:
//
//	l, err := lab.Start(ctx, lab.Options{Dir: t.TempDir(), AdmissionOnly: true})
//	if err != nil {
//		t.Fatal(err)
//	}
//	t.Cleanup(func() { _ = l.Stop() })
//	_, stderr, err := l.Kubectl("apply", "-f", "raycluster.yaml")
//
// Invariants: everything listens on loopback or in a network of pods only, every file is written under
// Options.Dir or the build cache, and no process outlives its lab.
package lab
