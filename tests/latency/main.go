// Command latency measures how soon Rayfit answers demand: from when a GCS has it
// to the PATCH that the API server has accepted. The GCS is played, everything
// else is real; the moment is that at which a watch of RayClusters shows it.
//
//	go run ./latency --rayfit FILE --docs FOLDER
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/playgcs"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

// Between these lines of benchmarks.md stands what a run writes.
const (
	begin = "<!-- latency: begin (make bench-reconcile writes this part) -->"
	end   = "<!-- latency: end -->"
)

// workers of each cluster.
const workers = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rayfit := flag.String("rayfit", "", "the binary to measure, built for release")
	docs := flag.String("docs", "", "the folder with benchmarks.md, to be brought up to date; without it, only the table is printed")
	clusters := flag.Int("clusters", 100, "RayClusters, each of which is asked twice")
	flag.Parse()
	if *rayfit == "" || flag.NArg() > 0 || *clusters < 1 {
		return fmt.Errorf("usage: latency --rayfit FILE [--docs FOLDER] [--clusters N]")
	}
	if err := os.Setenv("RAYFIT_BIN", *rayfit); err != nil {
		return fmt.Errorf("name the binary: %w", err)
	}
	machine, err := tables.ThisMachine()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-latency-")
	if err != nil {
		return fmt.Errorf("make a folder for the lab: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(ctx, lab.Options{Dir: dir, AdmissionOnly: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { _ = l.Stop() }()
	w, err := scaling.Observe(ctx, l)
	if err != nil {
		return err
	}
	defer w.Close()
	gcs := playgcs.New(w.Notify)
	defer gcs.Stop()
	written, err := scaling.WriteClusters(ctx, l, gcs, *clusters, workers, 0)
	if err != nil {
		return err
	}
	controller, err := scaling.StartController(ctx, l, "")
	if err != nil {
		return err
	}
	defer func() { _ = controller.Stop() }()
	if err := followed(ctx, written); err != nil {
		return err
	}
	taken, err := measure(ctx, w, written)
	if err != nil {
		return err
	}
	fmt.Printf("%s; %d clusters\n\n%s", machine, *clusters, table(taken).Aligned())
	if *docs == "" {
		return nil
	}
	text := fmt.Sprintf("%s. %d clusters of %d pods.\n\n%s", machine, *clusters, workers+1, table(taken).Markdown())
	return tables.Write(filepath.Join(*docs, "benchmarks.md"), begin, end, text)
}

// followed waits until the controller asks every cluster's GCS.
func followed(ctx context.Context, written *scaling.WrittenClusters) error {
	return lab.Eventually(ctx, scaling.Patience, "every cluster is followed", func() error {
		for i := range written.Clusters {
			if n := written.Played(i).Calls()["GetClusterResourceState"]; n < 3 {
				return fmt.Errorf("%s was asked %d times", written.Clusters[i].Name, n)
			}
		}
		return nil
	})
}

// samples are times until the accepted PATCH, by what they begin with.
type samples struct {
	quiet, active []time.Duration // since the GCS has the demand
	shown         []time.Duration // since the GCS has told of it
}

// measure asks each cluster for a worker more, twice: when it was at rest, and
// when it waits for a worker already, and so is looked at more often.
func measure(ctx context.Context, w *scaling.World, written *scaling.WrittenClusters) (samples, error) {
	var taken samples
	for i := range written.Clusters {
		for more := 1; more <= 2; more++ {
			// At no fixed moment of the controller's second.
			select {
			case <-time.After(time.Duration(rand.Int64N(int64(time.Second)))):
			case <-ctx.Done():
				return taken, ctx.Err()
			}
			asked, shown, accepted, err := ask(ctx, w, written, i, more)
			if err != nil {
				return taken, err
			}
			if more == 1 {
				taken.quiet = append(taken.quiet, accepted.Sub(asked))
			} else {
				taken.active = append(taken.active, accepted.Sub(asked))
			}
			taken.shown = append(taken.shown, accepted.Sub(shown))
		}
	}
	return taken, nil
}

func ask(ctx context.Context, w *scaling.World, written *scaling.WrittenClusters, i, more int) (asked, shown, accepted time.Time, err error) {
	played := written.Played(i)
	asked = time.Now()
	tasks := 1
	if more == 1 {
		tasks += workers // those that are there take theirs
	}
	played.Ask(tasks, map[string]float64{"CPU": 1})
	err = w.Until(ctx, "the RayCluster is patched", func() error {
		object, err := w.RayCluster(written.Clusters[i])
		if err != nil {
			return err
		}
		n, _ := object.Get("spec.workerGroupSpecs[0].replicas").(float64)
		if int(n) != workers+more {
			return fmt.Errorf("replicas is %v", n)
		}
		accepted = object.Last
		return nil
	})
	return asked, played.Shown(), accepted, err
}

func table(taken samples) tables.Table {
	row := func(what string, values []time.Duration, goal string) []string {
		slices.Sort(values)
		at := func(share float64) string {
			value := values[min(len(values)-1, int(share*float64(len(values))))]
			return tables.Amount(float64(value)/float64(time.Millisecond)) + " ms"
		}
		return []string{what, at(0.5), at(0.99), goal}
	}
	return tables.Table{
		{"until the API server has accepted the PATCH", "p50", "p99", "goal"},
		row("since the GCS told of the demand", taken.shown, "p50 at most 150 ms, p99 at most 1 s"),
		row("since the GCS has it, cluster waits for a worker", taken.active, ""),
		row("since the GCS has it, cluster at rest", taken.quiet, ""),
	}
}
