// Command compare measures Ray's own autoscaler and Rayfit, in both of its modes,
// on the same scripts in the same lab, one after the other, and writes the tables
// into docs/benchmarks.md.
//
//	go run ./compare --rayfit FILE --docs FOLDER
//
// The head pods are real: Ray's GCS, a real driver, the real operator. In bursts
// the workers' containers only sleep, so that a hundred fit; where a pod grows, and in
// workloads, the workers are real ones and their tasks run.
//
// Reading order: main.go (a run), options.go (its command line), scalers.go (what is measured and who), burst.go
// and growth.go (scripts of how soon a scaler acts), workloads.go and workload.py
// (scripts of whole workloads), perform.go (how these run), outcome.go (what they come
// to), goal.go (whether that is good), process.go (whose memory), report.go, logs.go.
package main
