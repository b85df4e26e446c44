#!/usr/bin/env bash
# chromium.sh: prints where a Chromium is that can be run without a window. RAYFIT_CHROMIUM names one;
# on Debian, root gets its own package where there is none.
set -eu
find_chromium() {
  local name
  for name in "${RAYFIT_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name"; then
      return
    fi
  done
  return 1
}
if ! find_chromium; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "no Chromium works here: apt-get install chromium" >&2
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium >&2
  fi
  find_chromium || {
    echo "no Chromium was found. Install one, or name it in RAYFIT_CHROMIUM." >&2
    exit 1
  }
fi
