#!/usr/bin/env bash
# commit.sh: from which commit figures are, in the words in which every page that is written by a run says so.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short=8 HEAD 2>/dev/null) || {
  echo "an unknown commit: there is no repository"
  exit
}
# What runs have written into the documents changes nothing that is measured.
changed=$(git status --porcelain -- . ':!docs')
echo "commit \`$commit\`${changed:+ with changes}"
