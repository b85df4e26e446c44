package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const help = `Compares Ray's own autoscaler and Rayfit, in both of its modes, on the same scripts
in the same lab, one after the other, and says where the goal is reached.

usage: compare --rayfit FILE [--scripts LIST] [--only MODE] [--policy FILE] [--rounds N] [--docs FOLDER] [--logs FOLDER]

Scripts:
  bursts   how soon pods are asked for, by 1, 10 and 100 tasks and a placement group of 100
  grow     how soon tasks run on a pod that grows in place
%s
Examples:
  compare --rayfit ../target/release/rayfit
  compare --rayfit ../target/release/rayfit --scripts gaps,serve --only central
  compare --rayfit ../target/release/rayfit --scripts gaps,mixed,group,serve,actors --docs ../docs
  compare --rayfit ../target/release/rayfit --scripts gaps --policy compare/headroom.yaml
  compare --rayfit ../target/release/rayfit --scripts mixed --logs why

Flags:
`

// options are what a run was asked for.
type options struct {
	rayfit, docs, logs string
	policy             string // a manifest; "" for none
	rounds             int
	scripts            []string
	modes              []scaling.Mode
}

// parse reads the command line; help and what is wrong with it are written to where.
func parse(args []string, where io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(where)
	flags.StringVar(&o.rayfit, "rayfit", "", "the `file` to measure, built for release")
	flags.StringVar(&o.docs, "docs", "", "the `folder` with benchmarks.md, to be brought up to date; without it, the tables are only printed")
	flags.StringVar(&o.logs, "logs", "", "a `folder` for what was seen of each cluster and what its scaler said, to find out why")
	flags.IntVar(&o.rounds, "rounds", 1, "how often each scaler has its turn; tables have medians")
	file := flags.String("policy", "", "a `file` with a RayPolicy with headroom that Rayfit has in mode central; mode sidecar is left out, since a controller would have to tell it")
	names := flags.String("scripts", "", "the scripts to run, a comma between two; all without it")
	only := flags.String("only", "", "one scaler: ray, central or sidecar; all without it")
	flags.Usage = func() {
		var list strings.Builder
		for _, w := range workloads {
			fmt.Fprintf(&list, "  %-8s %s\n", w.name, w.what)
		}
		fmt.Fprintf(where, help, list.String())
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.scripts, o.modes = scripts(), modes
	if *names != "" {
		o.scripts = strings.Split(*names, ",")
	}
	for _, name := range o.scripts {
		if !slices.Contains(scripts(), name) {
			return o, fmt.Errorf("--scripts: there is no script %q: use %s", name, strings.Join(scripts(), ", "))
		}
	}
	if *only != "" {
		o.modes = []scaling.Mode{scaling.Mode(*only)}
		if !slices.Contains(modes, o.modes[0]) {
			return o, fmt.Errorf("--only: there is no scaler %q: use ray, central or sidecar", *only)
		}
	}
	if *file != "" {
		manifest, err := os.ReadFile(*file)
		if err != nil {
			return o, fmt.Errorf("--policy: %w", err)
		}
		o.policy = string(manifest)
		o.modes = slices.DeleteFunc(slices.Clone(o.modes), func(mode scaling.Mode) bool { return mode == scaling.Sidecar })
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected %q: see compare --help", flags.Arg(0))
	case o.rayfit == "":
		return o, fmt.Errorf("--rayfit is missing: name the binary to measure")
	case o.rounds < 1:
		return o, fmt.Errorf("--rounds is %d: use 1 or more", o.rounds)
	case o.docs != "" && (*only != "" || *file != ""):
		return o, fmt.Errorf("--docs needs the figures of all scalers without a policy: leave --only and --policy out")
	case o.docs != "" && !whole(o.scripts):
		return o, fmt.Errorf("--docs needs whole tables: run bursts and grow, or all others, or everything")
	}
	return o, nil
}

// whole is whether scripts are all those of a table, of both tables or neither.
func whole(names []string) bool {
	has := func(wanted ...string) (some, all bool) {
		all = true
		for _, name := range wanted {
			there := slices.Contains(names, name)
			some, all = some || there, all && there
		}
		return some, all
	}
	some, all := has(bursting, growing)
	someOthers, allOthers := has(scripts()[2:]...)
	return some == all && someOthers == allOthers
}

// duration is about how long the run takes, as measured on a machine with two cores.
func (o options) duration() time.Duration {
	sum := time.Duration(0)
	for _, mode := range o.modes {
		if slices.Contains(o.scripts, bursting) {
			sum += 60 * time.Second
			if mode == scaling.Ray {
				sum += 95 * time.Second
			}
		}
		if slices.Contains(o.scripts, growing) {
			sum += 22 * time.Second
		}
		longest := time.Duration(0)
		for _, w := range chosen(o.scripts) {
			longest = max(longest, w.end())
		}
		if longest > 0 {
			sum += longest + 15*time.Second
		}
	}
	return sum*time.Duration(o.rounds) + 25*time.Second
}
