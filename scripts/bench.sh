#!/usr/bin/env bash
# bench.sh BINARY: measures BINARY's webhook beside that of KubeRay's operator, prints a table and
# brings docs/benchmarks.md up to date. The machine should have nothing else to do.
set -eu
binary=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root/tests"
exec "${GO:-go}" run ./bench --rayfit "$binary" --docs "$root/docs"
