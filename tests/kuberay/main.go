package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/tables"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kuberay:", err)
		os.Exit(1)
	}
}

// order is begun in by a run, and the order of the table's columns.
var order = []scaling.Mode{scaling.Ray, scaling.Central, scaling.Sidecar}

// Where the table is in the page.
const (
	page  = "integrations.md"
	begin = "<!-- begin of KubeRay's suites: `make kuberay` -->"
	end   = "<!-- end of KubeRay's suites -->"
)

func run(ctx context.Context) error {
	o := options{progress: os.Stderr}
	rayfit := flag.String("rayfit", "", "the binary to try")
	docs := flag.String("docs", "", "the folder with "+page+", whose table is written anew; without it the table is printed")
	modes := flag.String("modes", "ray,central,sidecar", "who scales the clusters")
	suites := flag.String("suites", strings.Join(all, ","), "which suites")
	flag.StringVar(&o.only, "run", "", "which of their tests, as a regular expression; all if empty")
	flag.StringVar(&o.folder, "results", "", "a folder for the results, to which those of a run are added, and for the logs of its pods")
	flag.IntVar(&o.atOnce, "at-once", 4, "how many tests run at the same time")
	flag.Parse()
	if o.folder == "" || *rayfit == "" && *modes != "" || flag.NArg() > 0 || o.atOnce < 1 {
		return fmt.Errorf("usage: kuberay --rayfit FILE --results FOLDER [--docs FOLDER] [--modes ray,central] [--suites %s] [--run PATTERN] [--at-once N]", all[0])
	}
	o.suites = words(*suites)
	found, err := load(o.folder)
	if err != nil {
		return err
	}
	if found.commit, err = tables.Commit(); err != nil {
		return err
	}
	for _, mode := range words(*modes) {
		if o.rayfit, err = filepath.Abs(*rayfit); err != nil {
			return fmt.Errorf("find the binary: %w", err)
		}
		if err := o.try(ctx, scaling.Mode(mode), found); err != nil {
			return fmt.Errorf("mode %s: %w", mode, err)
		}
	}
	fmt.Print("\n", found.table().Aligned())
	if *docs != "" {
		if err := tables.Write(filepath.Join(*docs, page), begin, end, found.page()); err != nil {
			return err
		}
	}
	return found.verdict()
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
