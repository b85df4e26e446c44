#!/usr/bin/env bash
# Rayfit's planner beside Ray's scheduler, into docs/benchmarks.md. Arguments go to bench-plan.py.
#
# PROFILE  of cargo (default bench, which is optimised)
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(tests/parity/python.sh)
binary=$(cargo bench --locked --profile "${PROFILE:-bench}" --bench plan --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/plan-[^"]*\)".*/\1/p' | tail -1)
exec "$python" scripts/bench-plan.py --python "$python" --binary "$binary" "$@"
