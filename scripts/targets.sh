#!/usr/bin/env bash
# targets.sh [WORD..]: the short runs of scripts/targets.txt, one after the other, or those of which a name
# contains one of the words. One that fails does not end the others: all failures are listed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
# What a `make` around this was told is not meant for those in it.
unset MAKEFLAGS MFLAGS MAKELEVEL
export rayfit=$PWD/target/debug/rayfit
all=$(mktemp -d "${TMPDIR:-/tmp}/targets.XXXXXX")
trap 'rm -rf "$all"' EXIT
# A run that hangs is a failure, and does not keep the others from being tried.
limit=20m

# changed PAGE: the run has written its part of the page, and the page says from which commit.
changed() {
  if cmp -s "docs/$1" "$docs/$1"; then
    echo "$1 is as it was"
    return 1
  fi
  grep -F "$(scripts/commit.sh)" "$docs/$1" || {
    echo "$1 does not say from which commit it is"
    return 1
  }
}
export -f changed

# Each of the lines that make a run begins in the repository.
try() {
  local line text=''
  for line in "$@"; do
    text+="($line)"$'\n'
  done
  timeout --kill-after=1m "$limit" bash -euo pipefail -c "$text" </dev/null >"$scratch.log" 2>&1
}

is_wanted() {
  local word
  [ ${#wanted[@]} -gt 0 ] || return 0
  for word in "${wanted[@]}"; do
    [[ "${names[*]}" != *"$word"* ]] || return 0
  done
  return 1
}

# What has been read of names and their run, if they have one.
run() {
  [ ${#lines[@]} -gt 0 ] && is_wanted || return 0
  local begun=$SECONDS word=ok
  number=$((number + 1))
  export scratch=$all/$number docs=$all/$number/docs
  mkdir "$scratch"
  cp -r docs "$docs"
  try "${lines[@]}" || word=FAILED
  ! grep -h '^NOT RUN' "$scratch.log" >>"$all/told" || word='NOT RUN'
  printf '  %-32s %3d s  %s\n' "${names[0]}" $((SECONDS - begun)) "$word"
  if [ "$word" = FAILED ]; then
    sed 's/^/    /' "$scratch.log" | tail -n 40
    failed+=("${names[0]}")
  fi
  rm -rf "$scratch"
}

wanted=("$@") number=0 failed=() names=() lines=() reads=names
: >"$all/told"
while IFS= read -r line; do
  case $line in
    '' | '#'*) ;;
    '  $ '*) lines+=("${line#'  $ '}") reads=lines ;;
    '  '*) reads=lines ;;
    *)
      if [ "$reads" = lines ]; then
        run
        names=() lines=() reads=names
      fi
      names+=("$line")
      ;;
  esac
done <scripts/targets.txt
run
cat "$all/told"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
[ "$number" -gt 0 ] || {
  echo "targets.sh: no short run has a name with ${wanted[*]}" >&2
  exit 2
}
