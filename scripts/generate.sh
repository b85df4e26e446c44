#!/usr/bin/env bash
# generate.sh RAYFIT [FOLDER]: writes what is made from the code: manifests/, docs/rules.md and docs/schema/;
# docs/demo.svg, which is made from docs/rollout.md; and crates/core/src/schema/, which is made from KubeRay's CRDs. Into FOLDER
# if it is given, which has these as the repository does. Tests check that none of them has drifted.
set -eu
rayfit=$(realpath "${1:?usage: generate.sh RAYFIT [FOLDER]}")
cd "$(dirname "$0")/.."
# shellcheck source=scripts/rust-tests.sh
. scripts/rust-tests.sh
into=$(realpath "${2:-.}")
# Before the rest, which the new tables may change: then `make generate` is called once more.
(cd tests && "${GO:-go}" run ./fields "$into/crates/core/src/schema")
RAYFIT_CHART=$into/manifests linting "$cargo" test --locked --test core -- --exact manifests::the_folder_is_what_the_command_writes
scripts/demo-svg.py <"$into/docs/rollout.md" >"$into/docs/demo.svg"
cd "$into"
"$rayfit" manifests --write-to manifests
"$rayfit" rules -o markdown > docs/rules.md
for what in snapshot plan; do
  "$rayfit" plan --schema "$what" > "docs/schema/$what.schema.json"
done
"$rayfit" trace --schema > docs/schema/trace.schema.json
