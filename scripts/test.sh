#!/usr/bin/env bash
# test.sh TITLE PART..: parts of what must pass, one after the other, with a table of their times at the
# end. `make test` and `make test-all` say which. A further part is a function below.
#
# UNTIL when the part lab_all is to end, in seconds since 1970; what is not built by then is no failure
# RUST_TEST_THREADS  how many tests in Rust run at a time; three for each core without it, since those with
#       servers, processes and Ray mostly wait
# SEED  of all random cases; without it a fresh one, but in CI, where the same cases are tried every
#       time, so that a change is to blame for what it breaks
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/parts.sh
. scripts/parts.sh
cargo=${CARGO:-cargo} go=${GO:-go}
seed=${SEED:-$([ -n "${CI:-}" ] && echo 1 || date +%s)}

format() {
  "$cargo" fmt --check || return
  local unformatted
  unformatted=$(gofmt -l tests)
  [ -z "$unformatted" ] || {
    echo "not formatted: $unformatted; run make fmt"
    return 1
  }
}

lint() {
  "$cargo" clippy --locked --all-targets -- -D warnings &&
    (cd tests && "$go" vet ./...)
}

docs() {
  RUSTDOCFLAGS='-D warnings' "$cargo" doc --locked --no-deps --document-private-items
}

licences() {
  scripts/cargo-deny.sh check bans licenses sources
}

# What is tested, and the tests.
build() {
  "$cargo" build --locked && "$cargo" test --locked --no-run
}

# What the short set needs of the lab, into its cache.
lab() {
  (cd tests && "$go" run ./lab/cmd/lab build kube operator ray)
}

# All of the lab.
lab_all() {
  local limit=() left code=0
  if [ -n "${UNTIL:-}" ]; then
    left=$((UNTIL - $(date +%s)))
    limit=(timeout "$((left > 0 ? left : 1))")
  fi
  (cd tests && "${limit[@]}" "$go" run ./lab/cmd/lab build) || code=$?
  [ "$code" != 124 ] || {
    echo "NOT BUILT to the end: the lab, because the time for it was over"
    code=0
  }
  return "$code"
}

# Units, properties, fixtures, servers, the command line, and the client of the GCS with real Ray.
rust() {
  echo "random cases: again with SEED=$seed"
  # SEED=1, as in CI, is the first 300 seeds of simulations with faults.
  local first=$(((seed - 1) % 1000000 * 300))
  RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))} PROPTEST_RNG_SEED=$seed \
    RAYFIT_SEEDS=${RAYFIT_SEEDS:-$first..$((first + 300))} RAYFIT_KUBECTL=$PWD/scripts/kubectl.sh RAYFIT_RAY=$(scripts/ray.sh) \
    "$cargo" test --locked --no-fail-fast
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

for part in "${@:2}"; do
  declare -F "$part" >/dev/null || {
    echo "test.sh: there is no part $part" >&2
    exit 2
  }
done
run_parts "$@"
