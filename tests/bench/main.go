package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/tables"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rayfit := flag.String("rayfit", "", "the binary to measure, built for release")
	least := flag.String("floor", "", "the compiled floor.rs, built like it")
	docs := flag.String("docs", "", "the folder with benchmarks.md, to be brought up to date; without it, only the table is printed")
	rounds := flag.Int("rounds", 3, "how often each server is started and measured")
	quick := flag.Bool("quick", false, "a tenth of the requests, to see whether it works")
	dir := flag.String("dir", "", "an empty folder for the lab and logs; without it, one that is removed at the end")
	flag.Parse()
	if *rayfit == "" || *least == "" || flag.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("usage: bench --rayfit FILE --floor FILE [--docs FOLDER] [--rounds N] [--quick] [--dir FOLDER]")
	}
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("this needs two cores: one for the server, one for the load")
	}
	if err := bindAll(generatorCore); err != nil {
		return err
	}
	if *dir == "" {
		made, err := os.MkdirTemp("", "rayfit-bench-")
		if err != nil {
			return fmt.Errorf("make a folder for the lab: %w", err)
		}
		defer os.RemoveAll(made)
		*dir = made
	}
	l, err := lab.Start(ctx, lab.Options{Dir: *dir, AdmissionOnly: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { _ = l.Stop() }()
	results, err := measureAll(ctx, l, *rayfit, *least, *rounds, *quick)
	if err != nil {
		return err
	}
	results.print(os.Stdout)
	if *docs == "" {
		return nil
	}
	return results.write(*docs)
}

// measureAll lets the contenders take turns, so that what changes on the
// machine meanwhile meets all.
func measureAll(ctx context.Context, l *lab.Lab, rayfit, least string, rounds int, quick bool) (results, error) {
	machine, err := tables.ThisMachine()
	if err != nil {
		return results{}, err
	}
	all, err := reviews()
	if err != nil {
		return results{}, err
	}
	authority, err := l.CA()
	if err != nil {
		return results{}, err
	}
	config, err := trust(authority)
	if err != nil {
		return results{}, err
	}
	servers, err := contenders(ctx, l, rayfit, least)
	if err != nil {
		return results{}, err
	}
	outcome := results{machine: machine, rounds: rounds, of: map[string][]figures{}}
	for round := range rounds {
		for _, c := range servers {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, c.name)
			measured, err := (&measurement{reviews: all, config: config, quick: quick}).of(ctx, c)
			if err != nil {
				return results{}, err
			}
			outcome.of[c.name] = append(outcome.of[c.name], measured)
		}
	}
	return outcome, nil
}
