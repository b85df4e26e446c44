#!/usr/bin/env bash
# fuzz.sh SECONDS: each target of fuzz/ for that long. Findings stay in fuzz/artifacts.
set -eu
seconds=${1:?usage: fuzz.sh SECONDS}
cd "$(dirname "$0")/.."
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzzing needs a nightly toolchain: rustup toolchain install nightly" >&2
  exit 1
fi
root=${XDG_CACHE_HOME:-$HOME/.cache}/rayfit/tools
if ! "$root/bin/cargo-fuzz" --version >/dev/null 2>&1; then
  echo "building cargo-fuzz (about a minute, once)" >&2
  cargo install cargo-fuzz --locked --version 0.13.2 --root "$root" --quiet
fi
export PATH="$root/bin:$PATH"
for target in review object yaml ippr answer decide trace; do
  echo "== $target"
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024
done
