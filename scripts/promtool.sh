#!/usr/bin/env bash
# promtool.sh: prints where Prometheus' promtool is. RAYFIT_PROMTOOL names one; on Debian it is taken out of its package
# where there is none: installed, that package would serve metrics too.
set -eu
command -v "${RAYFIT_PROMTOOL:-promtool}" && exit
found=${XDG_CACHE_HOME:-$HOME/.cache}/rayfit/promtool
if [ ! -x "$found" ]; then
  command -v apt-get >/dev/null || {
    echo "no promtool was found. Install Prometheus, or name its promtool in RAYFIT_PROMTOOL." >&2
    exit 1
  }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  apt-get download -q prometheus >&2 || { apt-get update -q && apt-get download -q prometheus; } >&2
  dpkg-deb -x prometheus_*.deb .
  mkdir -p "${found%/*}"
  mv usr/bin/promtool "$found"
fi
echo "$found"
