#!/usr/bin/env bash
# Fresh cases against Ray's own code: tests/parity/run.sh SEED COUNT. A new recording of the corpus:
# tests/parity/run.sh record; of Ray's messages: tests/parity/run.sh wire.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(tests/parity/python.sh)
if [ "${1:-}" = record ]; then
    "$python" tests/parity/record.py --seed 1 --count 1200 | gzip -9n >tests/parity/corpus.jsonl.gz
    exec cargo test --locked --test core parity::decisions
fi
if [ "${1:-}" = wire ]; then
    "$python" tests/parity/wire.py
    exec cargo test --locked --lib --test core wire
fi
cases=$(mktemp --suffix .jsonl)
trap 'rm -f "$cases"' EXIT
"$python" tests/parity/record.py --seed "${1:-$RANDOM$RANDOM}" --count "${2:-1000}" >"$cases"
RAYFIT_PARITY_CASES=$cases cargo test --locked --profile "${RAYFIT_CARGO_PROFILE:-dev}" --test core parity::decisions -- --nocapture
