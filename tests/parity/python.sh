#!/usr/bin/env bash
# Prints a Python that has Ray 2.60.0; makes it on first use, in the user's cache.
set -euo pipefail
home=${XDG_CACHE_HOME:-$HOME/.cache}/rayfit/ray-2.60.0
if ! "$home/bin/python" -c 'import ray; assert ray.__version__ == "2.60.0"' 2>/dev/null; then
    python3 -m venv "$home" >&2
    "$home/bin/pip" install --quiet 'ray==2.60.0' >&2
fi
echo "$home/bin/python"
