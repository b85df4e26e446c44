#!/usr/bin/env bash
# Certificates for development, into certs/dev. Further arguments are further host names.
set -euo pipefail
cd "$(dirname "$0")/.."
hosts=()
for host in "$@"; do
  hosts+=(--host "$host")
done
exec cargo run --quiet --locked -- dev-certs certs/dev "${hosts[@]}"
