#!/usr/bin/env bash
# generate.sh RAYFIT: writes what is made from the code: manifests/, docs/rules.md, docs/schema/ and
# the table in README.md. Tests check that none of them has drifted.
set -eu
rayfit=${1:?usage: generate.sh RAYFIT}
cd "$(dirname "$0")/.."
"$rayfit" manifests --write-to manifests
"$rayfit" rules -o markdown > docs/rules.md
for what in snapshot plan; do
  "$rayfit" plan --schema "$what" > "docs/schema/$what.schema.json"
done
"$rayfit" trace --schema > docs/schema/trace.schema.json
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$rayfit" rules -o markdown-table > "$table"
sed -i -e "/^<!-- rules:/r $table" -e '/^<!-- rules:/,/^<!-- \/rules -->/{/^<!--/!d}' README.md
