// Package rig puts Rayfit in front of a lab's API server, as a test needs it:
// `rayfit serve` as a process of this machine, and the webhook configurations
// that `rayfit manifests` prints, with nothing changed in them but the address.
//
//	r, err := rig.Start(ctx, l)                  // in effect when it returns
//	_, stderr, err := l.Apply(rig.RayCluster("default", "a").YAML())
//	err = r.Uninstall(ctx)                       // as before Rayfit came
//	err = r.Install(ctx, rig.FailClosed)         // in effect when it returns
//
// Reading order: [Start] in rig.go, the process in server.go, the webhook
// configurations in webhooks.go, objects in object.go and samples.go, metrics
// in metrics.go.
package rig
