package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if err := os.Setenv("RAYFIT_BIN", o.rayfit); err != nil {
		return fmt.Errorf("name the binary: %w", err)
	}
	machine, err := tables.ThisMachine()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rayfit-compare-")
	if err != nil {
		return fmt.Errorf("make a folder for the lab: %w", err)
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(os.Stderr, "%s this takes about %s\n", time.Now().Format(time.TimeOnly), o.duration().Round(time.Minute/2))
	l, err := lab.Start(ctx, lab.Options{
		Dir: dir, Nodes: 1, Cores: 256, Memory: "1Ti", Ray: true, Serve: slices.Contains(o.scripts, serving), Audit: lab.AuditMetadata,
		With: []string{lab.WithOperator}, OperatorEnv: []string{"ENABLE_PROBES_INJECTION=false"},
		RayfitBinary: o.rayfit, Progress: os.Stderr,
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
	outcome := results{machine: machine, rounds: o.rounds, scripts: o.scripts, modes: o.modes, policy: o.policy, of: map[scaling.Mode][]figures{}}
	for round := range o.rounds {
		for _, mode := range o.modes {
			var got figures
			t := turn{w: w, mode: mode, policy: o.policy, round: round, progress: os.Stderr, log: &logs{folder: o.logs}, got: &got}
			if err := t.measure(ctx, o.scripts); err != nil {
				// What was measured until then has taken long.
				fmt.Print(outcome.told())
				if ctx.Err() != nil {
					return fmt.Errorf("mode %s: a signal has ended it: %w", mode, err)
				}
				return fmt.Errorf("mode %s: %w", mode, err)
			}
			outcome.of[mode] = append(outcome.of[mode], got)
		}
	}
	fmt.Print(outcome.told())
	if o.docs == "" {
		return nil
	}
	return outcome.write(o.docs)
}
