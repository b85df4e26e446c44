#!/usr/bin/env bash
# cargo-deny at the version we use, built once into the cache if it is not there.
set -eu
version=0.20.2
root=${XDG_CACHE_HOME:-$HOME/.cache}/rayfit/tools
if ! "$root/bin/cargo-deny" --version 2>/dev/null | grep -qF "$version"; then
  echo "building cargo-deny $version (about 5 minutes, once)" >&2
  cargo install cargo-deny --locked --version "$version" --root "$root" --quiet
fi
exec "$root/bin/cargo-deny" --log-level warn "$@"
