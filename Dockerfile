# The image holds one static program, which is also its own /bin/bash: KubeRay starts the
# autoscaler container with a fixed `/bin/bash -c -- "ray kuberay-autoscaler .."`.
#
# `make image` uses this file with docker or podman. With buildah it needs no network and puts the
# same files into the same places (scripts/image.sh).

FROM docker.io/library/rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# A target is named so that build scripts and procedural macros are not linked statically.
# The linker of x86_64 is LLD, which keeps functions that are equal to the byte only once.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
 && case "$target" in x86_64-*) icf="-C link-arg=-Wl,--icf=all" ;; esac \
 && RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs ${icf:-}" cargo build --locked --release --target "$target" \
 && mkdir -p /image/bin \
 && cp "target/$target/release/rayfit" /image/rayfit \
 && ln -s /rayfit /image/bin/bash

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/rayfit"]
LABEL org.opencontainers.image.title="rayfit" \
      org.opencontainers.image.licenses="Apache-2.0"
