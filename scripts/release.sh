#!/usr/bin/env bash
# release.sh COMMAND: the steps of a release, as .github/workflows/release.yaml calls them and as people can.
#
#   version                     the version, which is that of Cargo.toml and of nothing else
#   build TARGET                a static binary for a Rust target, or `host`, this machine's; prints where it is
#   binary TARGET OUT           the archive of that binary, with its completions
#   stage TARGET OUT            the files of the image for that target, in OUT/<amd64|arm64>, and OUT/Dockerfile
#   chart OUT [REGISTRY [DIGEST]]  the chart, whose image is that of the registry and the digest
#   sbom OUT                    the crates in the binaries, as SPDX
#   krew OUT URL                the krew manifest for the archives in OUT, which will be below URL
#   notes                       the part of CHANGELOG.md about the version
#   checksums OUT               the sums of everything in OUT
#   dry-run                     all of these, twice; the bytes must be the same
#
# RAYFIT_RELEASE_BINARY  a binary to put into archives and images, instead of building it
# RAYFIT_RELEASE_TARGETS targets of dry-run (this machine's, and arm64 where its linker is here; with a binary only this
#                        machine's)
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC

fail() {
  echo "release.sh: $*" >&2
  exit 1
}

version() {
  sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1
}

host() {
  rustc -vV | sed -n 's/^host: //p'
}

# What Kubernetes and krew call a Rust target: OS and architecture.
platform() {
  case $1 in
    x86_64-unknown-linux-gnu) echo linux amd64 ;;
    aarch64-unknown-linux-gnu) echo linux arm64 ;;
    aarch64-apple-darwin) echo darwin arm64 ;;
    *) fail "no release has a binary for $1" ;;
  esac
}

# Paths of this machine are left out of the binary.
build() {
  if [ -n "${RAYFIT_RELEASE_BINARY:-}" ]; then
    realpath "$RAYFIT_RELEASE_BINARY"
    return
  fi
  echo "building a static binary for $1 (some minutes the first time)" >&2
  # What keeps it small: relocations in their short form, and, where the linker is LLD as Rust has it for x86_64,
  # functions that are equal to the byte only once.
  local flags="--remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  case $1 in
    *-linux-*) flags+=" -C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs" ;;
  esac
  case $1 in
    x86_64-unknown-linux-gnu) flags+=" -C link-arg=-Wl,--icf=all" ;;
    aarch64-unknown-linux-gnu)
      if [ "$(uname -m)" != aarch64 ]; then
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
      fi
      ;;
  esac
  # A target is named so that build scripts and procedural macros are not linked statically.
  RUSTFLAGS=$flags cargo build --locked --release --target "$1" >&2
  echo "$PWD/target/$1/release/rayfit"
}

# pack ARCHIVE FOLDER NAME..: the same bytes whoever packs when.
pack() {
  local archive=$1 folder=$2
  shift 2
  # GNU tar; macOS has another one, and gtar where GNU's is installed.
  local tar=tar
  ! command -v gtar >/dev/null || tar=gtar
  "$tar" --create --directory "$folder" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go+r,go-w "$@" | gzip --no-name --best >"$archive"
}

binary() {
  local target=$1 out=$2 os arch built work shell runs
  read -r os arch <<<"$(platform "$target")"
  built=$(build "$target")
  work=$(mktemp -d)
  mkdir -p "$out" "$work/completions"
  cp "$built" "$work/rayfit"
  cp LICENSE README.md scripts/kubectl_complete-rayfit "$work"
  runs=("$work/rayfit")
  "${runs[@]}" --version >/dev/null 2>&1 || runs=(qemu-aarch64-static "$work/rayfit")
  if ! "${runs[@]}" --version >/dev/null 2>&1; then
    runs=("target/$(host)/release/rayfit")
    echo "NOT RUN: $target, which needs qemu-user-static here: it has the completions that ${runs[0]} says" >&2
  fi
  for shell in bash zsh fish; do
    "${runs[@]}" completions "$shell" >"$work/completions/rayfit.$shell" || fail "build for $(host) first"
  done
  pack "$out/rayfit-$(version)-$os-$arch.tar.gz" "$work" rayfit kubectl_complete-rayfit LICENSE README.md completions
  rm -rf "$work"
}

stage() {
  local target=$1 out=$2 os arch built
  read -r os arch <<<"$(platform "$target")"
  [ "$os" = linux ] || fail "a program for $target cannot run in the image: build it on Linux or in a container"
  built=$(build "$target")
  mkdir -p "$out/$arch/bin"
  install -m 0755 "$built" "$out/$arch/rayfit"
  ln -sf /rayfit "$out/$arch/bin/bash"
  # As in the last part of the Dockerfile at the top, with binaries that are there already.
  {
    echo 'FROM scratch'
    echo 'ARG TARGETARCH'
    # shellcheck disable=SC2016 # for docker
    echo 'COPY ${TARGETARCH}/ /'
    sed -n '/^USER/,$p' Dockerfile
  } >"$out/Dockerfile"
}

chart() {
  local out=$1 registry=${2:-} digest=${3:-} work
  work=$(mktemp -d)
  mkdir -p "$out"
  cp -R manifests/helm "$work/rayfit"
  if [ -n "$registry" ]; then
    sed -i.bak -e "s|^  registry: .*|  registry: \"$registry\"|" -e "s|^  digest: .*|  digest: \"$digest\"|" "$work/rayfit/values.yaml"
    rm "$work/rayfit/values.yaml.bak"
    grep -qF "registry: \"$registry\"" "$work/rayfit/values.yaml" || fail "values.yaml has no registry to set"
  fi
  pack "$out/rayfit-chart-$(version).tgz" "$work" rayfit
  rm -rf "$work"
}

sbom() {
  mkdir -p "$1"
  python3 scripts/sbom.py "$(version)" <Cargo.lock >"$1/rayfit-$(version).spdx.json"
}

krew() {
  local out=$1 url=$2 archive os arch
  {
    cat <<EOF
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: rayfit
spec:
  version: v$(version)
  homepage: $(sed -n 's/^homepage = "\(.*\)"/\1/p' Cargo.toml)
  shortDescription: Check and scale Ray clusters of KubeRay
  description: |
    Says which RayClusters cannot scale or resize in place and why, how they are scaled now, and which settings would
    let a workload wait less or cost less.
  caveats: |
    For completion copy ~/.krew/store/rayfit/v$(version)/kubectl_complete-rayfit into ~/.krew/bin. It needs bash.
  platforms:
EOF
    for archive in "$out"/rayfit-*.tar.gz; do
      [[ $(basename "$archive" .tar.gz) =~ -([a-z]+)-([a-z0-9]+)$ ]] || fail "$archive names no platform"
      os=${BASH_REMATCH[1]} arch=${BASH_REMATCH[2]}
      cat <<EOF
  - selector: {matchLabels: {os: $os, arch: $arch}}
    uri: $url/$(basename "$archive")
    sha256: $(sha256sum "$archive" | cut -d ' ' -f 1)
    bin: rayfit
    files:
    - {from: rayfit, to: .}
    - {from: kubectl_complete-rayfit, to: .}
    - {from: LICENSE, to: .}
EOF
    done
  } >"$out/rayfit.yaml"
}

notes() {
  awk -v heading="## $(version)" '
    /^## / { inside = index($0, heading) == 1; next }
    inside { print; found = found || NF }
    END { exit !found }
  ' CHANGELOG.md || fail "CHANGELOG.md has nothing below \"## $(version)\""
}

checksums() {
  rm -f "$1/checksums.txt"
  local sums
  sums=$(cd "$1" && sha256sum -- *)
  echo "$sums" >"$1/checksums.txt"
}

# The targets that can be built here.
targets() {
  if [ -n "${RAYFIT_RELEASE_TARGETS:-}" ]; then
    echo "$RAYFIT_RELEASE_TARGETS"
    return
  fi
  host
  # A binary that is given is for one target.
  [ -z "${RAYFIT_RELEASE_BINARY:-}" ] || return 0
  if command -v aarch64-linux-gnu-gcc >/dev/null && rustup target list --installed | grep -q '^aarch64-unknown-linux-gnu$'; then
    echo aarch64-unknown-linux-gnu
  else
    echo 'NOT BUILT: arm64, which needs gcc-aarch64-linux-gnu and rustup target add aarch64-unknown-linux-gnu' >&2
  fi
}

dry_run() {
  local out=target/release-dry-run round files target
  rm -rf "$out"
  for round in 1 2; do
    files=$out/$round/files
    for target in $(targets); do
      # In the same place, since a build writes paths of its own into what it generates.
      [ -n "${RAYFIT_RELEASE_BINARY:-}" ] || cargo clean --quiet --package rayfit --package rayfit-core --release --target "$target"
      binary "$target" "$files"
      [[ $target != *-linux-* ]] || stage "$target" "$out/$round/image"
    done
    chart "$files" registry.example "sha256:$(printf '0%.0s' {1..64})"
    sbom "$files"
    krew "$files" "https://example.org/v$(version)"
    notes >"$files/notes.md"
    checksums "$files"
  done
  diff --recursive --no-dereference "$out/1" "$out/2" || fail "two builds of the same commit differ"
  echo "the same bytes twice, in $out/1:"
  cat "$out/1/files/checksums.txt"
}

case ${1:-} in
  build | binary | stage)
    [ "$2" != host ] || set -- "$1" "$(host)" "${@:3}"
    "$@"
    ;;
  version | chart | sbom | krew | notes | checksums) "$@" ;;
  dry-run) dry_run ;;
  *) fail "write one of the commands at the top of this file" ;;
esac
