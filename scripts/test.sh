#!/usr/bin/env bash
# test.sh TITLE PART..: parts of what must pass, one after the other, PART+PART beside each other, with a
# table of their times at the end. `make test` and `make test-all` say which. A further part is a function below.
#
# RUST_TEST_THREADS  how many tests in Rust run at a time; three for each core without it, since those with
#       servers, processes and Ray mostly wait
# SEED  of all random cases (1)
set -euo pipefail
cd "$(dirname "$0")/.."
# As the lab is built, so that the standard library is compiled once for both.
export CGO_ENABLED=0
# shellcheck source=scripts/parts.sh
. scripts/parts.sh
# shellcheck source=scripts/rust-tests.sh
. scripts/rust-tests.sh
go=${GO:-go}

format() {
  "$cargo" fmt --check || return
  scripts/wrap.py --check || return
  local unformatted
  unformatted=$(gofmt -l tests)
  [ -z "$unformatted" ] || {
    echo "not formatted: $unformatted; run make fmt"
    return 1
  }
}

# And the workflows, which are programs too; their scripts by shellcheck, where that is installed.
vet() {
  (cd tests && "$go" vet ./...) || return
  "$go" run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7 .github/workflows/*.yaml examples/github/*.yaml
}

docs() {
  RUSTDOCFLAGS='-D warnings' "$cargo" doc --locked --no-deps --document-private-items
}

licences() {
  scripts/cargo-deny.sh check bans licenses sources
}

# The binary, all tests and benchmarks, by Clippy, which compiles as rustc does: what is built is linted.
build() {
  linting "$cargo" test --locked --no-run --all-targets
}

# What the short set needs of the lab, into its cache.
lab() {
  (cd tests && "$go" run ./lab/cmd/lab build kube operator ray)
}

# All of the lab.
lab_all() {
  (cd tests && "$go" run ./lab/cmd/lab build)
}

# Units, properties, fixtures, servers, the command line, and the client of the GCS with real Ray.
rust() {
  rust_settings
  linting "$cargo" test --locked --no-fail-fast
}

# A short run of every target, script and command in the documents, with the same compiler as all else, so that
# what is built is there.
targets() {
  linting scripts/targets.sh
}

suite() {
  (cd tests && RAYFIT_BIN=$OLDPWD/target/debug/rayfit "$go" run ./suite --times "$times" "$@")
}

# The real API server, KubeRay and Ray: tests/suite/sets.go says what is in the short set.
live() {
  suite short
}

# What the short set leaves out.
rest() {
  suite rest
}

words=${*:2}
for part in ${words//+/ }; do
  declare -F "$part" >/dev/null || {
    echo "test.sh: there is no part $part" >&2
    exit 2
  }
done
run_parts "$@"
