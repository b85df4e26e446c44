#!/usr/bin/env bash
# image.sh build: the container image, with docker, podman or buildah, whichever works here.
# image.sh test:  the image is small, runs as nobody in particular, and starts in each of its parts.
#
# RAYFIT_IMAGE          name of the image              (rayfit:<version>)
# RAYFIT_IMAGE_TOOL     docker, podman or buildah      (the first that works)
# RAYFIT_IMAGE_BINARY   a static binary to put into it (built here)
# RAYFIT_IMAGE_WORK     a folder for its files         (target/image)
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
image=${RAYFIT_IMAGE:-rayfit:$version}
work=${RAYFIT_IMAGE_WORK:-target/image}
# In bytes: nodes pull the image into every head pod.
limit=30000000
user=65532:65532

fail() {
  echo "image.sh: $*" >&2
  exit 1
}

works() {
  case $1 in
    docker | podman) "$1" info >/dev/null 2>&1 ;;
    buildah) "$1" --version >/dev/null 2>&1 ;;
    *) fail "RAYFIT_IMAGE_TOOL=$1: write docker, podman or buildah" ;;
  esac
}

choose_tool() {
  local tool
  for tool in ${RAYFIT_IMAGE_TOOL:-$*}; do
    if works "$tool"; then
      echo "$tool"
      return
    fi
  done
  fail "none of ${RAYFIT_IMAGE_TOOL:-$*} works here. Install one, for example buildah, which needs
  no daemon: apt-get install buildah, dnf install buildah (https://buildah.io)"
}

# A binary without any shared library, since the image has none.
static_binary() {
  RAYFIT_RELEASE_BINARY=${RAYFIT_IMAGE_BINARY:-} scripts/release.sh build host
}

# The files of the image.
stage() {
  local binary
  binary=$(static_binary)
  [ -x "$binary" ] || fail "$binary is no program"
  rm -rf "$work/files"
  mkdir -p "$work/files/bin"
  cp "$binary" "$work/files/rayfit"
  chmod 0755 "$work/files/rayfit"
  ln -s /rayfit "$work/files/bin/bash"
}

# build_with_buildah [STORAGE OPTIONS..]
build_with_buildah() {
  local container
  container=$(buildah "$@" from scratch)
  buildah "$@" copy --quiet "$container" "$work/files" / >/dev/null
  buildah "$@" config --user "$user" --entrypoint '["/rayfit"]' --cmd '' \
    --label org.opencontainers.image.title=rayfit \
    --label org.opencontainers.image.licenses=Apache-2.0 "$container"
  buildah "$@" commit --quiet --rm "$container" "$image" >/dev/null
}

build_with_dockerfile() {
  "$1" build --tag "$image" --file Dockerfile "$work/files"
}

build() {
  local tool
  tool=$(choose_tool docker podman buildah)
  stage
  if [ "$tool" = buildah ]; then
    build_with_buildah
    rm -f "$work/rayfit.tar"
    buildah push --quiet "$image" "docker-archive:$work/rayfit.tar:$image"
    echo "built $image with buildah; for docker load, kind load image-archive: $work/rayfit.tar"
  else
    build_with_dockerfile "$tool"
    echo "built $image with $tool"
  fi
}

# Unpacks the image below $work/unpacked and writes what it runs to $work/config.
unpack() {
  local tool=$1 container
  rm -rf "$work/unpacked"
  mkdir -p "$work/unpacked"
  stage
  if [ "$tool" = buildah ]; then
    # Storage of its own, and a driver that needs no kernel support: this works in containers too.
    local storage=(--storage-driver vfs --root "$(realpath "$work")/storage" --runroot "$(realpath "$work")/run")
    build_with_buildah "${storage[@]}"
    buildah "${storage[@]}" inspect --type image \
      --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "$image" >"$work/config"
    container=$(buildah "${storage[@]}" from --pull-never "$image")
    cp -a "$(buildah "${storage[@]}" mount "$container")/." "$work/unpacked/"
    chmod u+w "$work/unpacked"
    buildah "${storage[@]}" rm --all >/dev/null
    buildah "${storage[@]}" rmi --all --force >/dev/null
  else
    build_with_dockerfile "$tool"
    "$tool" inspect --format '{{.Config.User}} {{.Config.Entrypoint}}' "$image" >"$work/config"
    container=$("$tool" create "$image")
    "$tool" export "$container" | tar -x -C "$work/unpacked"
    "$tool" rm "$container" >/dev/null
  fi
}

# Runs a program of the image with nothing but the image's files.
in_image() {
  if [ "$(id -u)" = 0 ]; then
    exec chroot --userspec="$user" "$work/unpacked" "$@"
  fi
  exec unshare --map-root-user chroot "$work/unpacked" "$@"
}

# wait_for FILE TEXT PID: until a line of the program's output has the text.
wait_for() {
  local file=$1 text=$2 pid=$3
  until grep -q "$text" "$file"; do
    kill -0 "$pid" 2>/dev/null || fail "it ended before it said \"$text\": $(cat "$file")"
    sleep 0.05
  done
}

stop() {
  local pid=$1 name=$2 code=0
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" = 0 ] || fail "$name: exit code $code after SIGTERM"
}

check_files() {
  local bytes config
  bytes=$(du --bytes --summarize "$work/unpacked" | cut -f 1)
  [ "$bytes" -le "$limit" ] || fail "the image has $bytes bytes, more than $limit"
  config=$(cat "$work/config")
  [ "$config" = "$user [/rayfit]" ] || fail "user and entry point are \"$config\""
  echo "ok: $bytes bytes, user and entry point $config"
}

check_version() {
  local said
  said=$(in_image /rayfit --version)
  [ "$said" = "rayfit $version" ] || fail "--version says \"$said\""
  echo "ok: $said"
}

check_serve() {
  local log=$work/serve.log pid port
  : >"$log"
  (in_image /rayfit serve --bind 127.0.0.1 --port 0 --health-port 0 --shutdown-delay 0 \
    --log-format json >>"$log" 2>&1) &
  pid=$!
  wait_for "$log" 'health and metrics' "$pid"
  port=$(sed -n 's/.*"address":"127\.0\.0\.1:\([0-9]*\)".*/\1/p' "$log" | head -n 1)
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  grep -q ' 200 ' <&3 || fail "/livez does not answer 200"
  exec 3>&-
  stop "$pid" serve
  echo "ok: serve starts, answers /livez and stops"
}

check_bash() {
  local log=$work/bash.log pid flag code said
  for flag in -c -cl; do
    : >"$log"
    (in_image /bin/bash "$flag" -- \
      'ray kuberay-autoscaler --cluster-name prod --cluster-namespace ray' 2>>"$log") &
    pid=$!
    wait_for "$log" 'waiting until the mode of RayCluster ray/prod is sidecar' "$pid"
    said=$(sed -n 's/^VmRSS:\s*//p' "/proc/$pid/status")
    stop "$pid" "/bin/bash $flag"
    echo "ok: /bin/bash $flag stands by with $said"
  done
  code=0
  said=$(in_image /bin/bash -c 'echo hello' 2>&1) || code=$?
  [ "$code" = 2 ] || fail "/bin/bash -c 'echo hello': exit code $code, \"$said\""
  echo "ok: /bin/bash is no shell"
}

# What is called does its own set-up; buildah is all that may be missing, and only its own package.
install_buildah() {
  local tool tools=${RAYFIT_IMAGE_TOOL:-buildah docker podman}
  for tool in $tools; do
    ! works "$tool" || return 0
  done
  if [[ $tools == buildah* ]] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "none of $tools works here: apt-get install buildah" >&2
    apt-get update -q >&2
    apt-get install -y -q --no-install-recommends buildah >&2
  fi
}

case ${1:-} in
  build)
    install_buildah
    build
    ;;
  test)
    install_buildah
    tool=$(choose_tool buildah docker podman)
    if [ "$tool" = buildah ] && [ "$(id -u)" != 0 ]; then
      # Mounting an image and chroot need a user namespace.
      RAYFIT_IMAGE_BINARY=$(static_binary) exec buildah unshare "$0" test
    fi
    unpack "$tool"
    check_files
    (check_version)
    check_serve
    check_bash
    echo "the image works"
    ;;
  *) fail "write: image.sh build or image.sh test" ;;
esac
