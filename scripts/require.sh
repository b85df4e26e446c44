#!/usr/bin/env bash
# require.sh TOOL 'VERSION COMMAND' LEAST 'WHAT TO INSTALL': fails with a clear word if TOOL is
# missing or older than LEAST.
set -eu
tool=$1 command=$2 least=$3 hint=$4
if ! command -v "$tool" >/dev/null 2>&1; then
  echo "$tool is missing. Install $hint." >&2
  exit 1
fi
found=$($command 2>&1 | grep -oE '[0-9]+(\.[0-9]+)+|[0-9]+' | head -n 1)
if [ "$(printf '%s\n%s\n' "$least" "$found" | sort -V | head -n 1)" != "$least" ]; then
  echo "$tool is version $found, too old. Install $hint." >&2
  exit 1
fi
