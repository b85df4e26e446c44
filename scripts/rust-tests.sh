# rust-tests.sh, to be sourced: how the tests in Rust are run, by make test and by steady.sh.

cargo=${CARGO:-cargo}

# The same random cases everywhere, unless SEED says which others: who changed nothing sees what everybody
# sees. Fresh ones belong to make test-long.
seed=${SEED:-1}

# rust_settings: what the programs read. Each SEED has 300 seeds of simulations with faults to itself.
rust_settings() {
  export PROPTEST_RNG_SEED=$seed
  export RAYFIT_SEEDS=${RAYFIT_SEEDS:-$(((seed - 1) % 1000000 * 300))..}
  export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
  RAYFIT_KUBECTL=$PWD/scripts/kubectl.sh
  RAYFIT_RAY=$(scripts/ray.sh)
  export RAYFIT_KUBECTL RAYFIT_RAY
}

# linting COMMAND..: a cargo command whose compiler is Clippy's for what is ours. It compiles what it lints,
# so that our code is read once for both. A warning is an error.
linting() {
  CLIPPY_ARGS='-Dwarnings__CLIPPY_HACKERY__' RUSTC_WORKSPACE_WRAPPER=clippy-driver "$@"
}
