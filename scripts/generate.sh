#!/usr/bin/env bash
# generate.sh RAYFIT: writes what is made from the code: manifests/, docs/rules.md and the table in
# README.md. Tests check that none of them has drifted.
set -eu
rayfit=${1:?usage: generate.sh RAYFIT}
cd "$(dirname "$0")/.."
"$rayfit" manifests --write-to manifests
"$rayfit" rules -o markdown > docs/rules.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$rayfit" rules -o markdown-table > "$table"
sed -i -e "/^<!-- rules:/r $table" -e '/^<!-- rules:/,/^<!-- \/rules -->/{/^<!--/!d}' README.md
