#!/usr/bin/env bash
# install.sh FOLDER: a released binary for this machine into a folder, after its sum has been checked.
#
# VERSION      with or without the v of its tag
# REPOSITORY   OWNER/NAME at GitHub; or
# DOWNLOADS    where the files of the release are, instead
set -euo pipefail
folder=${1:?usage: install.sh FOLDER}
version=${VERSION:?the version of rayfit is not given, and the action is not used by a tag: set the input version}
version=${version#v}
downloads=${DOWNLOADS:-https://github.com/${REPOSITORY:?}/releases/download/v$version}
case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-amd64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-arm64) platform=darwin-arm64 ;;
  *)
    echo "install.sh: there is no rayfit for $(uname -s) on $(uname -m)" >&2
    exit 1
    ;;
esac
archive=rayfit-$version-$platform.tar.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for file in "$archive" checksums.txt; do
  curl --fail --silent --show-error --location --retry 3 --output "$file" "$downloads/$file"
done
sum=sha256sum
command -v sha256sum >/dev/null || sum='shasum -a 256'
grep -F "  $archive" checksums.txt | $sum --check --quiet
mkdir -p "$folder"
tar --extract --gzip --file "$archive" --directory "$folder" rayfit
"$folder/rayfit" --version
