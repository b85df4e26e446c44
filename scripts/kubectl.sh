#!/usr/bin/env bash
# The lab's own kubectl (built once into the cache), so that tests need no other.
set -eu
cd "$(dirname "$0")/../tests"
exec "$(go run ./lab/cmd/lab build kube)" kubectl "$@"
