#!/usr/bin/env bash
# Certificates for development, into certs/dev, or into the folder that CERTS names. Arguments are further
# host names.
set -euo pipefail
cd "$(dirname "$0")/.."
hosts=()
for host in "$@"; do
  hosts+=(--host "$host")
done
exec cargo run --quiet --locked -- dev-certs "${CERTS:-certs/dev}" "${hosts[@]}"
