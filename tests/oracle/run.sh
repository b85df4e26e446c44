#!/usr/bin/env bash
# run.sh SEED COUNT [MOST]: writes objects with what KubeRay's own validation says to each, as JSON lines: the cases of
# KubeRay's tests, its samples, and COUNT mutations of them; at most MOST (100000) for each kind of refusal. What
# `make test` reads was made by
#
#   tests/oracle/run.sh 1 20000 6 | gzip -9n > tests/oracle/answers.jsonl.gz
set -euo pipefail
cd "$(dirname "$0")"
go=${GO:-go} module=github.com/ray-project/kuberay/ray-operator
export CGO_ENABLED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of KubeRay that records what its tests validate, and is built from the same modules.
"$go" mod download "$module"
cp -r "$("$go" list -m -f '{{.Dir}}' "$module")" "$work/module"
chmod -R u+w "$work/module"
utils=$work/module/controllers/ray/utils
cp record.go.txt "$utils/record.go"
sed -i -E -e 's/^func ValidateRayClusterSpec\(spec .*\{$/&\n\trecord(spec, annotations)/' \
  -e 's/^func Validate(RayClusterUpgradeOptions|Ray(Job|Service|CronJob)Spec)\((\w+) .*\{$/&\n\trecord(\3, nil)/' "$utils/validation.go"
cp go.mod "$work/go.mod" && cp go.sum "$work/go.sum"
"$go" mod edit -replace "$module=$work/module" "$work/go.mod"
RECORD=$work/cases.jsonl "$go" test -count=1 -modfile "$work/go.mod" -run TestValidate "$module/controllers/ray/utils" >&2

"$go" run . "${1:?usage: run.sh SEED COUNT [MOST]}" "${2:?usage: run.sh SEED COUNT [MOST]}" "${3:-100000}" "$work/cases.jsonl"
