// Command compare measures Ray's own autoscaler and Rayfit, in both of its modes,
// on the same scripts in the same lab, one after the other, and writes the table
// into docs/benchmarks.md.
//
//	go run ./compare --rayfit FILE --docs FOLDER
//
// The head pods are real: Ray's GCS, a real driver, the real operator. In bursts
// the workers' containers only sleep, so that a hundred fit; where a pod grows,
// the worker is a real one and its tasks run.
//
// Reading order: main.go (a run), scalers.go (what is measured and who), burst.go
// and growth.go (the scripts), process.go (whose memory), report.go.
package main
