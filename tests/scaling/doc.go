// Package scaling drives Ray clusters that are to scale, in a lab, and sees what
// comes of it: real tasks are held at work for as long as a test wants, and
// every wait is for a change that somebody reports.
//
//	w, err := scaling.Observe(ctx, l)
//	c := scaling.Cluster{Name: "a", Mode: scaling.Central, Groups: ...}
//	err = w.Create(ctx, &c)
//	d, err := w.Drive(ctx, c)
//	err = d.Do(ctx, `hold("one", 2, num_cpus=1)`)
//	err = w.Until(ctx, "two tasks at work", func() error { return w.TaskGate.AtWork("one", 2) })
//	w.TaskGate.Release("one")
//
// Reading order: [World] in world.go over the copies of API objects in cache.go;
// whose pods they are and which were named for deletion in owned.go; clusters in
// cluster.go; the script inside the head pod in driver.go and driver.py, and where
// its tasks check in, gate.go; `rayfit serve` as a process that can be killed in
// controller.go; the API server's audit log in audit.go.
package scaling
