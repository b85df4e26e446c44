#!/usr/bin/env bash
# Prints the bin folder of the lab's own Ray (installed once into the cache), for tests without a lab.
set -eu
cd "$(dirname "$0")/../tests"
exec go run ./lab/cmd/lab build ray
