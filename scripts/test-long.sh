#!/usr/bin/env bash
# test-long.sh [PART..]: what is too long for `make test`: more random cases, fresh comparisons with
# Ray, and the lab at full size. All parts, one after the other, or those that are named.
# A further part is a function below and a word in `all`.
#
# CASES   random cases per property (default 5000)
# SEED    of the random cases, and the first of the fresh planner cases (default: the time), printed
#         for doing it again
# COUNT   how many of them (default 20000)
# PROFILE  of cargo, for builds (default soak: optimised a little, with every check that a debug build has)
# ROUNDS  how often the parts lab and scaling are run in one cluster each (default 1)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/parts.sh
. scripts/parts.sh
# shellcheck source=scripts/rust-tests.sh
. scripts/rust-tests.sh
all=(build thorough random faults parity refusals fuzz image lab older scaling scale ray kuberay)
go=${GO:-go}
cases=${CASES:-5000} seed=${SEED:-$(date +%s)} count=${COUNT:-20000} rounds=${ROUNDS:-1}
profile=${PROFILE:-soak}
# Where cargo puts what it builds: of the profile `dev` that is `debug`.
built=$PWD/target/${profile/#dev/debug}
export RAYFIT_THOROUGH=1 RAYFIT_KUBECTL=$PWD/scripts/kubectl.sh

# The binary and the tests.
build() {
  "$cargo" test --locked --profile "$profile" --no-run
}

# Of the random and simulated cases of make test those, too, that are too many for an answer in minutes.
thorough() {
  echo "again: make test-long PARTS=thorough SEED=$seed"
  rust_settings
  "$cargo" test --locked --profile "$profile" --no-fail-fast --test core
}

# The properties of the library, the planner, the defaults and hostile input.
random() {
  echo "again: make test-long PARTS=random SEED=$seed CASES=$cases"
  export PROPTEST_CASES=$cases PROPTEST_RNG_SEED=$seed
  "$cargo" test --locked --profile "$profile" --no-fail-fast --lib &&
    "$cargo" test --locked --profile "$profile" --no-fail-fast --test core --test shell -- \
      planner::properties:: defaults:: detail:: hostile::
}

# Simulations in which things go wrong: 10,000 seeds, and whether faults put in on purpose are found.
faults() {
  local first=$((seed % 1000000 * 10000))
  echo "again: RAYFIT_SEEDS=$first..$((first + 10000)) $cargo test --profile $profile --test core simulate_faults"
  RAYFIT_SEEDS=$first..$((first + 10000)) "$cargo" test --locked --profile "$profile" --test core simulate_faults:: &&
    PROFILE=$profile scripts/mutants.py
}

# Ray's own code decides the same fresh snapshots.
parity() {
  echo "again: make parity SEED=$seed COUNT=$count"
  RAYFIT_CARGO_PROFILE=$profile tests/parity/run.sh "$seed" "$count"
}

# KubeRay's own validation judges fresh mutations of its samples.
refusals() {
  echo "again: make test-long PARTS=refusals SEED=$seed COUNT=$count"
  local answers
  answers=$(mktemp)
  tests/oracle/run.sh "$seed" "$count" >"$answers" &&
    RAYFIT_KUBERAY_ANSWERS=$answers "$cargo" test --locked --profile "$profile" --test core kuberay::
}

# Each parser is fuzzed for a minute, which needs a nightly toolchain.
fuzz() {
  scripts/fuzz.sh 60
}

# The container image is small enough, starts, and is what the autoscaler's bash is to be.
image() {
  scripts/image.sh test
}

# in_lab ARGUMENT..: Go tests at full size, which is what packages do where RAYFIT_LONG is set, with
# the figures that they tell. BINARY is what they test.
in_lab() {
  [ -n "${BINARY:-}" ] || build || return
  (cd tests && RAYFIT_LONG=1 RAYFIT_MODES=${MODES:-} RAYFIT_BIN=${BINARY:-$built/rayfit} \
    "$go" test -v -count="$rounds" -timeout 90m "$@")
}

# Certificate rotations, restarts, upgrades, policies, audits. Whether the simulator does what the lab does at the same
# moment is seen last, where nothing else keeps the lab waiting.
lab() {
  local packages failed=0
  packages=$(cd tests && "$go" list ./e2e/... | grep -v -e '/e2e/scaling$' -e '/e2e/agrees$')
  # shellcheck disable=SC2086 # a word for each package
  in_lab $packages || failed=1
  in_lab ./e2e/agrees || failed=1
  return $failed
}

# The short set with the oldest KubeRay whose autoscaler may resize pods.
older() {
  [ -n "${BINARY:-}" ] || build || return
  (cd tests && LAB_KUBERAY=1.5.1 RAYFIT_BIN=${BINARY:-$built/rayfit} "$go" run ./suite short)
}

# What one process costs, which says something of an optimised one only.
sized='TestManyClusters|TestLargeCluster|TestFromNothingToMany|TestClustersThatBreathe'

# Scaling with real and played Ray, in modes central and sidecar.
scaling() {
  in_lab -skip "$sized" ./e2e/scaling
}

# 1,000 clusters, 2,000 pods, from no worker to 1,000.
scale() {
  local binary
  binary=$(scripts/release.sh build host) && BINARY=$binary in_lab -run "$sized" ./e2e/scaling
}

# The scenarios that Rayfit is tried on, with Ray's own autoscaler: that it is the scenarios that are
# right.
ray() {
  MODES=ray in_lab -run 'TestDemand|TestGrowth|TestNodeLeaves' ./e2e/scaling
}

# KubeRay's own end-to-end suites, with Ray's autoscaler and with Rayfit in each of its modes. The
# results stay in .work/kuberay; `make kuberay` does the same, and writes them into the docs.
kuberay() {
  build || return
  (cd tests && "$go" run ./kuberay --rayfit "$built/rayfit" --results "$OLDPWD/.work/kuberay")
}

parts=("$@")
[ $# -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || {
    echo "test-long.sh: there is no part $part; there are: ${all[*]}" >&2
    exit 2
  }
done
run_parts "make test-long" "${parts[@]}"
