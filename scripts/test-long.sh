#!/usr/bin/env bash
# test-long.sh [PART..]: what is too long for `make test`: more random cases, fresh comparisons with
# Ray, and the soaks in the lab twice. All parts, one after the other, or those that are named.
# A further part is a function below and a word in `all`.
#
# CASES   random cases per property (default 5000)
# SEED    the first of the fresh planner cases (default: the time), printed for doing it again
# COUNT   how many of them (default 20000)
set -euo pipefail
cd "$(dirname "$0")/.."
all=(build random parity e2e scaling)
cargo=${CARGO:-cargo} go=${GO:-go}
cases=${CASES:-5000} seed=${SEED:-$(date +%s)} count=${COUNT:-20000}
# Optimised a little, with every check that a debug build has.
profile=soak
export RAYFIT_KUBECTL=$PWD/scripts/kubectl.sh

build() {
  "$cargo" build --locked --profile "$profile" &&
    "$cargo" test --locked --profile "$profile" --no-run
}

# The properties of the library, the planner, the defaults and hostile input.
random() {
  PROPTEST_CASES=$cases "$cargo" test --locked --profile "$profile" --no-fail-fast --lib \
    --test plan_properties --test defaults --test detail --test hostile
}

# Ray's own code decides the same fresh snapshots.
parity() {
  echo "again: make parity SEED=$seed COUNT=$count"
  RAYFIT_CARGO_PROFILE=$profile tests/parity/run.sh "$seed" "$count"
}

# Certificate rotations, restarts, upgrades and everything else of the lab, twice in one cluster.
# Packages may do more of the same where RAYFIT_LONG is set.
e2e() {
  (cd tests && RAYFIT_LONG=1 RAYFIT_BIN=$OLDPWD/target/$profile/rayfit "$go" test -count=2 -timeout 60m ./e2e/...)
}

# The scenarios that Rayfit is tried on, with Ray's own autoscaler: that it is the scenarios that are
# right.
scaling() {
  (cd tests && RAYFIT_MODES=ray RAYFIT_BIN=$OLDPWD/target/$profile/rayfit "$go" test -count=1 -timeout 30m \
    -run 'TestDemand|TestGrowth' ./e2e/scaling)
}

minutes() {
  printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
}

parts=("$@")
[ $# -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || {
    echo "test-long.sh: there is no part $part; there are: ${all[*]}" >&2
    exit 2
  }
done
SECONDS=0 number=0
for part in "${parts[@]}"; do
  number=$((number + 1)) begun=$SECONDS
  echo "== $number of ${#parts[@]}: $part, after $(minutes $SECONDS)"
  "$part" || {
    echo "== $part FAILED after $(minutes $((SECONDS - begun)))" >&2
    exit 1
  }
  echo "== $part passed in $(minutes $((SECONDS - begun)))"
done
echo "== everything passed in $(minutes $SECONDS)"
