#!/usr/bin/env bash
# run.sh SEED COUNT [MOST]: writes objects with what KubeRay's own validation says to each, as JSON lines: the cases of
# KubeRay's tests, its samples, and COUNT mutations of them; at most MOST (100000) for each kind of refusal. KubeRay is
# the module of go.mod, or what is in the folder KUBERAY, and has the feature GATES, or else all of them. What `make test`
# reads was made by
#
#   tests/oracle/run.sh 1 20000 6 | gzip -9n > tests/oracle/answers-1.6.jsonl.gz
#   KUBERAY=ray-operator GATES= tests/oracle/run.sh 1 20000 6 | gzip -9n > tests/oracle/answers-1.7.jsonl.gz
#
# with the folder ray-operator of KubeRay's repository at v1.7.0: not every module proxy has its module.
set -euo pipefail
kuberay=${KUBERAY:+$(realpath "$KUBERAY")}
cd "$(dirname "$0")"
go=${GO:-go} module=github.com/ray-project/kuberay/ray-operator
export CGO_ENABLED=0 GATES=${GATES-AllAlpha=true,AllBeta=true}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of KubeRay that records what its tests validate, and is built from the same modules.
[ -n "$kuberay" ] || "$go" mod download "$module"
cp -r "${kuberay:-$("$go" list -m -f '{{.Dir}}' "$module")}" "$work/module"
chmod -R u+w "$work/module"
cp go.mod "$work/go.mod" && cp go.sum "$work/go.sum"
"$go" mod edit -replace "$module=$work/module" "$work/go.mod"
export GOFLAGS="${GOFLAGS:-} -modfile=$work/go.mod"
# Another KubeRay needs other modules.
[ -z "$kuberay" ] || "$go" mod tidy
"$go" build -o "$work/oracle" .
utils=$work/module/controllers/ray/utils
cp record.go.txt "$utils/record.go"
sed -i -E -e 's/^func ValidateRayClusterSpec\(spec .*\{$/&\n\trecord(spec, annotations)/' \
  -e 's/^func Validate(RayClusterUpgradeOptions|Ray(Job|Service|CronJob)Spec)\((\w+) .*\{$/&\n\trecord(\3, nil)/' "$utils/validation.go"
RECORD=$work/cases.jsonl "$go" test -count=1 -run TestValidate "$module/controllers/ray/utils" >&2

"$work/oracle" "${1:?usage: run.sh SEED COUNT [MOST]}" "${2:?usage: run.sh SEED COUNT [MOST]}" "${3:-100000}" "$work/cases.jsonl"
