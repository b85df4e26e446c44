// Command bench measures Rayfit's webhook beside KubeRay's own, in one run and
// by the same means, and writes what it found into docs/benchmarks.md.
//
//	go run ./bench --rayfit FILE --floor FILE --docs FOLDER
//
// Both servers are processes on this machine that talk to the same API server
// (the lab's) and get the same AdmissionReviews over TLS from the load
// generator here. So does a third one, floor.rs: Rayfit's listener before handlers
// that check nothing. The server has the first core for itself, the generator and
// everything else the second one. Rounds alternate, each with fresh processes;
// what is told is the median of the rounds.
//
// Reading order: main.go (a run), reviews.go (what is sent), servers.go (what
// is measured), load.go (how it is sent), procfs.go (cores),
// report.go, table.go and chart.go (what is told of
// it).
package main
