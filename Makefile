# What CI and people call. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
GO ?= go
BIN := $(CURDIR)/target/debug/rayfit
RELEASE := $(CURDIR)/target/release/rayfit

# Short runs, as scripts/targets.txt has them, measure a binary that is there already and write into a folder of
# their own: BINARY=FILE DOCS=FOLDER.
MEASURED := $(abspath $(or $(BINARY),$(RELEASE)))
BUILT := $(if $(BINARY),,release)
FLOOR := $(CURDIR)/target/$(if $(BINARY),debug,release)/examples/floor
PAGES := $(abspath $(or $(DOCS),docs))

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: tools-rust ## The binary, for development (target/debug/rayfit)
	@# With the examples, so that what we depend on has the features that it has in tests, and is compiled once for both.
	$(CARGO) build --locked --bins --examples

.PHONY: release
release: tools-rust ## The binary as the image has it: optimised, and without shared libraries (target/release/rayfit)
	mkdir -p $(dir $(RELEASE)) && install -m 0755 "$$(scripts/release.sh build host)" $(RELEASE)

.PHONY: test
test: tools ## An answer within minutes: lints, all tests in Rust, and each promise once in the lab (does its own set-up)
	scripts/test.sh 'make test' format build+lab vet+docs rust+live

.PHONY: test-all
test-all: test test-rest test-image ## Everything that must pass: `make test`, what that leaves out, and the container image

.PHONY: test-rest
test-rest: tools ## What `make test` leaves out: all other tests in the lab, licences, and a short run of every target (an hour)
	scripts/test.sh 'make test-rest' build+lab_all rest licences targets

.PHONY: test-rust
test-rust: tools ## Unit, property, fixture, server and command-line tests, and the GCS client with real Ray (SEED=1)
	scripts/test.sh 'make test-rust' rust

.PHONY: steady
steady: tools ## Whether the tests in Rust pass with a quarter of one core (N=20 PROGRAMS="attacks shell"; `live` beside busy loops)
	scripts/steady.sh $(or $(N),20) $(PROGRAMS)

.PHONY: test-lab
test-lab: tools ## All that is tried with the real API server, KubeRay, cert-manager and Ray, in the lab
	scripts/test.sh 'make test-lab' build lab_all live rest

.PHONY: test-image
test-image: tools-rust ## The image starts, as rayfit and as the autoscaler's bash
	scripts/image.sh test

.PHONY: test-long
test-long: tools ## Long random runs, fresh parity cases, the lab at full size, KubeRay's own suites (three hours; PARTS="random parity")
	scripts/test-long.sh $(PARTS)

.PHONY: fmt
fmt: ## Format everything
	$(CARGO) fmt
	cd tests && gofmt -w .
	scripts/wrap.py

.PHONY: lint
lint: tools ## Formatting, Clippy, go vet, documentation, licences: warnings are errors
	scripts/test.sh 'make lint' format build vet docs licences

.PHONY: deny
deny: tools-rust ## Licences, sources and duplicate crates (advisories where the network allows: make deny-advisories)
	scripts/test.sh 'make deny' licences

.PHONY: deny-advisories
deny-advisories: tools-rust ## Known vulnerabilities (fetches the advisory database)
	scripts/cargo-deny.sh check advisories

.PHONY: generate
generate: tools build ## Regenerate manifests/, docs/rules.md, docs/schema/, and the tables of KubeRay's CRDs
	GO=$(GO) scripts/generate.sh $(BIN) $(or $(INTO),.)

.PHONY: walk
walk: tools build ## Walk through docs/rollout.md in the lab, and write what its commands print, also into its translation
	cd tests && RAYFIT_WALK=$(PAGES)/rollout.md RAYFIT_BIN=$(BIN) $(GO) test -count=1 ./e2e/walk

.PHONY: image
image: tools-rust ## The container image, with docker, podman or buildah
	scripts/image.sh build

.PHONY: docs
docs: ## docs/ as a site that can be searched, in target/book, with its links checked (needs mdBook)
	scripts/book.sh

.PHONY: release-dry-run
release-dry-run: tools ## What a release needs no network for, twice, and whether the bytes are the same (BINARY=FILE: of that binary)
	RAYFIT_RELEASE_BINARY=$(BINARY) scripts/release.sh dry-run

.PHONY: demo
demo: $(if $(RAYFIT_DEMO_KUBECONFIG),,tools) ## A cluster on this machine, good and bad RayClusters, and what a person sees
	scripts/demo.sh

.PHONY: bench
bench: tools $(BUILT) ## Rayfit's webhook beside KubeRay's and beside the least that one costs, one run, into docs/benchmarks.md (ROUNDS=3)
	$(CARGO) build --locked $(if $(BINARY),,--release) --example floor
	cd tests && $(GO) run ./bench --rayfit $(MEASURED) --floor $(FLOOR) --docs $(PAGES) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(QUICK),--quick)

.PHONY: parity
parity: tools ## Fresh cases for the planner against Ray's own code (SEED=1 COUNT=1000)
	tests/parity/run.sh $(or $(SEED),1) $(or $(COUNT),1000)

.PHONY: bench-plan
bench-plan: tools ## Rayfit's planner beside Ray's scheduler, into docs/benchmarks.md (up to an hour, most of it Ray's)
	scripts/bench-plan.sh --out $(PAGES) $(if $(NODES),--nodes $(NODES)) $(if $(DEMANDS),--demands $(DEMANDS)) \
		$(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(if $(SIZES),--sizes $(SIZES))

.PHONY: compare
compare: tools $(BUILT) ## Ray's own autoscaler and Rayfit on the same scripts, into docs/benchmarks.md, about 25 minutes (ROUNDS=3; SCRIPTS=gaps,serve POLICY=FILE: printed only)
	cd tests && $(GO) run ./compare --rayfit $(MEASURED) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SCRIPTS),--scripts $(SCRIPTS)) \
		$(if $(POLICY),--policy $(abspath $(POLICY))) $(if $(SCRIPTS)$(POLICY),,--docs $(PAGES))

.PHONY: kuberay
kuberay: tools build ## KubeRay's own end-to-end suites in the lab, with Ray's autoscaler and each mode, into docs/integrations.md
	cd tests && $(GO) run ./kuberay --rayfit $(BIN) --results $(abspath $(or $(RESULTS),.work/kuberay)) --docs $(PAGES) \
		$(if $(MODES),--modes $(MODES)) $(if $(SUITES),--suites $(SUITES)) $(if $(RUN),--run '$(RUN)')

.PHONY: outcome
outcome: tools-rust ## Ray's and Rayfit's strategy in simulations, into docs/outcome.md (SETS=bursts POD_START=60 IDLE=60 SEEDS=1 POLICY=FILE: a table; ABLATION=1: without each slice in turn, into docs/planner.md)
	$(CARGO) bench --locked --profile $(or $(PROFILE),bench) --bench outcome -- --docs $(PAGES) $(if $(SETS),--sets $(SETS)) $(if $(POD_START),--pod-start $(POD_START)) \
		$(if $(IDLE),--idle $(IDLE)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(TRACES),--traces $(TRACES)) $(if $(POLICY),--policy $(abspath $(POLICY))) $(if $(ABLATION),--ablation)

.PHONY: bench-reconcile
bench-reconcile: tools $(BUILT) ## From demand in the GCS to the accepted PATCH, into docs/benchmarks.md
	cd tests && $(GO) run ./latency --rayfit $(MEASURED) --docs $(PAGES) $(if $(CLUSTERS),--clusters $(CLUSTERS))

.PHONY: fuzz
fuzz: ## Fuzz the parsers for five minutes each (needs a nightly toolchain and cargo-fuzz)
	scripts/fuzz.sh $(or $(FUZZ_SECONDS),300)

.PHONY: clean
clean: ## Remove what was built here (the lab's cache stays: see tests/lab/README.md)
	rm -rf target .work

# What must be there before anything else, with a clear word if it is not.
.PHONY: tools tools-rust
tools: tools-rust
	@scripts/require.sh $(GO) 'go version' 1.26 'Go 1.26 or later: https://go.dev/dl'
	@scripts/require.sh python3 'python3 --version' 3.10 'Python 3.10 or later, with venv (Debian: apt-get install python3-venv)'
tools-rust:
	@scripts/require.sh $(CARGO) 'cargo --version' 1.95 'Rust 1.95 or later: https://rustup.rs'
	@scripts/require.sh cc 'cc -dumpfullversion' 8 'a C compiler (Debian: apt-get install gcc)'
