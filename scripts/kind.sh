#!/usr/bin/env bash
# kind.sh KUBERNETES KUBERAY ARCHIVE: the demo in a cluster of kind, with published images of Kubernetes (1.35; "" for
# the one that kind brings), KubeRay (1.6.2) and Ray, and Rayfit's image rayfit:demo from an archive. It needs docker,
# kind, helm and kubectl, and removes the cluster at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=$1 kuberay=$2 archive=$3
name=rayfit-demo
export KUBECONFIG=$PWD/target/kind/kubeconfig
mkdir -p "$(dirname "$KUBECONFIG")"
trap 'kind delete cluster --name "$name"' EXIT
kind create cluster --name "$name" --wait 3m ${kubernetes:+--image "kindest/node:v$kubernetes.0"}
kind load image-archive "$archive" --name "$name"
helm install kuberay-operator kuberay-operator --repo https://ray-project.github.io/kuberay-helm \
  --version "$kuberay" --namespace kuberay-system --create-namespace --wait
minor=$(kubectl version -o json | sed -n '/serverVersion/,$s/.*"minor": "\([0-9]*\).*/\1/p' | head -n 1)
# From 1.33 on, pods can be resized without a feature gate.
[ "$minor" -lt 33 ] || export RAYFIT_DEMO_RAY=yes
RAYFIT_DEMO_KUBECONFIG=$KUBECONFIG RAYFIT_DEMO_IMAGE=rayfit:demo scripts/demo.sh
