package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rayfit := flag.String("rayfit", "", "the binary to measure, built for release")
	docs := flag.String("docs", "", "the folder with benchmarks.md, to be brought up to date; without it, only the table is printed")
	rounds := flag.Int("rounds", 3, "how often each is measured")
	only := flag.String("only", "", "one of ray, central, sidecar")
	part := flag.String("script", "", "one of bursts, grow, gaps")
	flag.Parse()
	if *rayfit == "" || flag.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("usage: compare --rayfit FILE [--docs FOLDER] [--rounds N] [--only MODE] [--script NAME]")
	}
	if err := os.Setenv("RAYFIT_BIN", *rayfit); err != nil {
		return fmt.Errorf("name the binary: %w", err)
	}
	dir, err := os.MkdirTemp("", "rayfit-compare-")
	if err != nil {
		return fmt.Errorf("make a folder for the lab: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(ctx, lab.Options{
		Dir: dir, Nodes: 1, Cores: 256, Memory: "1Ti", Ray: true, Audit: lab.AuditMetadata,
		With: []string{lab.WithOperator}, OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false"},
		RayfitBinary: *rayfit, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { _ = l.Stop() }()
	w, err := scaling.Observe(ctx, l)
	if err != nil {
		return err
	}
	defer w.Close()
	outcome := results{machine: tables.ThisMachine(), rounds: *rounds, of: map[scaling.Mode][]figures{}}
	for round := range *rounds {
		for _, mode := range modes {
			if *only != "" && string(mode) != *only {
				continue
			}
			got, err := measure(ctx, w, mode, *part, round)
			if err != nil {
				return fmt.Errorf("mode %s: %w", mode, err)
			}
			fmt.Fprintf(os.Stderr, "round %d, %s: %v\n", round+1, mode, got)
			outcome.of[mode] = append(outcome.of[mode], got)
		}
	}
	fmt.Print(outcome.told())
	if *docs == "" {
		return nil
	}
	return tables.Write(filepath.Join(*docs, "benchmarks.md"), begin, end, outcome.page())
}
