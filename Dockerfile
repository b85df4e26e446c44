# The image holds one static program, which is also its own /bin/bash: KubeRay starts the
# autoscaler container with a fixed `/bin/bash -c -- "ray kuberay-autoscaler .."`.
#
# `make image` builds the program and gives its files as the context (scripts/image.sh), so that no image of
# others has a part in it.

FROM scratch
COPY . /
USER 65532:65532
ENTRYPOINT ["/rayfit"]
LABEL org.opencontainers.image.title="rayfit" \
      org.opencontainers.image.licenses="Apache-2.0"
