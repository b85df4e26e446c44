#!/usr/bin/env bash
# steady.sh [N] [PROGRAM..]: whether the tests pass on a machine that has no time for them. Each test
# program in Rust (or those that are named: lib, lib-core, attacks, core, shell) runs N times (20) with a quarter of
# one core; `live`, the part of `make test` with real Kubernetes and Ray, runs N times beside two busy
# loops. At the end: what failed how often. The logs of failed runs stay in .work/steady.
#
# The quarter is a cgroup's, where root may make one; elsewhere the program has one core, which it shares
# with a busy loop. The programs run side by side, each with a quarter of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/rust-tests.sh
. scripts/rust-tests.sh

times=20
case ${1:-} in '' | *[!0-9]*) ;; *) times=$1 && shift ;; esac
wanted=${*:-lib lib-core attacks core shell}
logs=.work/steady
group=rayfit-steady-$$
children=()

cleanup() {
  local child
  for child in "${children[@]}"; do
    kill "$child" 2>/dev/null || true
  done
  wait
  rmdir /sys/fs/cgroup/cpu/"$group"-* /sys/fs/cgroup/"$group"-* 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# quota PROGRAM: a cgroup with a quarter of one core; its folder, or nothing where there can be none.
quota() {
  local v1=/sys/fs/cgroup/cpu/$group-$1 v2=/sys/fs/cgroup/$group-$1
  if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] && mkdir "$v1" 2>/dev/null; then
    echo 100000 >"$v1/cpu.cfs_period_us" && echo 25000 >"$v1/cpu.cfs_quota_us" && echo "$v1"
  elif grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null && mkdir "$v2" 2>/dev/null; then
    echo '25000 100000' >"$v2/cpu.max" && echo "$v2"
  fi
}

busy() {
  "$@" bash -c 'while :; do :; done' &
  children+=($!)
}

# limited FOLDER COMMAND..: runs a command with the quarter, on the core that is `shared` with a busy loop, or
# as it is.
limited() {
  local folder=$1
  shift
  case $folder in
    '') "$@" ;;
    shared) taskset -c 0 "$@" ;;
    *) (echo "$BASHPID" >"$folder/cgroup.procs" && exec "$@") ;;
  esac
}

# runs PROGRAM COMMAND..: the command N times. One line for each run goes into a table, and one for each
# test that failed.
runs() {
  local program=$1 folder=$2 run begun word
  shift 2
  for ((run = 1; run <= times; run++)); do
    begun=$SECONDS word=ok
    limited "$folder" "$@" >"$logs/$program.$run.log" 2>&1 || word=FAILED
    printf '%s %s %d %s\n' "$program" run $((SECONDS - begun)) "$word" >>"$logs/table"
    echo "$program: run $run of $times, $word after $((SECONDS - begun)) s"
    if [ "$word" = ok ]; then
      rm "$logs/$program.$run.log"
      continue
    fi
    # Rust's, Go's, and where a program ended without a word.
    sed -n -e 's/^test \(.*\) \.\.\. FAILED$/\1/p' -e 's/^ *[0-9:]* *FAILED *\([^:]*\).*/\1/p' "$logs/$program.$run.log" |
      sort -u | grep . >"$logs/$program.failed" || echo '(no test named)' >"$logs/$program.failed"
    sed "s/^/$program failed /" "$logs/$program.failed" >>"$logs/table"
  done
}

# program KIND NAME: the program of these tests, as cargo has just built it.
program() {
  sed -n 's/.*"kind":\["'"$1"'"\].*"name":"'"$2"'".*"executable":"\([^"]*\)".*/\1/p' "$logs/built"
}

rm -rf "$logs"
mkdir -p "$logs"
: >"$logs/table"
linting "$cargo" test --locked --no-run --message-format=json >"$logs/built"
rust_settings
export RAYFIT_BIN=$PWD/target/debug/rayfit
pids=()
for name in $wanted; do
  [ "$name" = live ] || continue
  busy
  busy
  runs live '' "${GO:-go}" -C tests run ./suite short
  kill "${children[@]}"
  children=()
done
for name in $wanted; do
  [ "$name" != live ] || continue
  case $name in
    lib) file=$(program lib rayfit) ;;
    lib-core) file=$(program lib rayfit_core) ;;
    *) file=$(program test "$name") ;;
  esac
  [ -n "$file" ] || {
    echo "steady.sh: there is no test program $name; write lib, lib-core, attacks, core, shell or live" >&2
    exit 2
  }
  folder=$(quota "$name")
  [ -n "$folder" ] || {
    busy taskset -c 0
    folder=shared
  }
  runs "$name" "$folder" "$file" &
  pids+=($!)
done
[ ${#pids[@]} = 0 ] || wait "${pids[@]}"
echo
echo "== $times runs each, of $wanted"
awk '
  $2 == "run" { runs[$1]++; if ($4 != "ok") { bad[$1]++; any = 1 } if ($3 > most[$1]) most[$1] = $3 }
  $2 == "failed" { test = $0; sub(/^[^ ]+ failed /, "", test); failed[$1 "  " test]++ }
  END {
    for (name in runs) printf "  %-8s %3d of %d passed, the longest in %d s\n", name, runs[name] - bad[name], runs[name], most[name]
    for (test in failed) printf "  failed %d times: %s\n", failed[test], test
    exit any
  }' "$logs/table"
