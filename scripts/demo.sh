#!/usr/bin/env bash
# demo.sh [BINARY]: what a person sees of Rayfit, with kubectl, in about two minutes. Without BINARY it
# builds Rayfit first, and shows a first denial while it builds the rest.
#
# Without more it starts a lab of its own (tests/lab/README.md) and ends it again. On a cluster of
# yours it needs kubectl and an image of Rayfit, and nothing else. It works in namespaces of its own,
# checks no objects elsewhere, and removes what it created:
#
# RAYFIT_DEMO_KUBECONFIG  that cluster's kubeconfig; no other one is ever read
# RAYFIT_DEMO_IMAGE       an image of Rayfit that the cluster can pull or has already; without it
#                         one is built (make image) and loaded, into kind and minikube
# RAYFIT_DEMO_RAY         if not empty, a Ray cluster is started there, too, whose pod grows in place:
#                         it needs KubeRay, Kubernetes 1.33, 3 CPUs and Ray's published image
set -euo pipefail
unset KUBECONFIG

repository=$(cd "$(dirname "$0")/.." && pwd)
binary=$(realpath -m "${1:-$repository/target/debug/rayfit}")
demo=rayfit-demo
work=$(mktemp -d "${TMPDIR:-/tmp}/rayfit-demo.XXXXXX")
undo=() # functions that remove what was made, the last one first

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' blue=$'\e[36m' plain=$'\e[0m'
else
  bold='' blue='' plain=''
fi

fail() {
  echo "demo.sh: $*" >&2
  exit 1
}

say() {
  printf '\n%s# %s%s\n' "$blue" "$*" "$plain"
}

# Shows a command as one types it, and runs it.
run() {
  printf '%s$ %s%s\n' "$bold" "$*" "$plain"
  eval "$*" 2>&1
}

# run, where the command is to say no.
run_refused() {
  if run "$*"; then
    fail "this should have been refused and was not: please report it as a bug"
  fi
}

clean_up() {
  local code=$? step
  trap '' INT TERM
  set +e
  for ((step = ${#undo[@]} - 1; step >= 0; step--)); do
    "${undo[step]}" || echo "demo.sh: ${undo[step]} did not succeed, something may be left" >&2
  done
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
trap 'echo; echo "stopping and cleaning up .." >&2; exit 130' INT
trap 'exit 143' TERM

# What is built here.

# What is to be built, and how long that takes on two cores.
tell_what_is_built() {
  local what=()
  if [ -n "$build_rayfit" ]; then
    [ -e "$binary" ] && what+=("Rayfit, what has changed since the last time") || what+=("Rayfit, about 4 min")
  fi
  (cd "$repository/tests" && go build -o "$work/bin/lab" ./lab/cmd/lab)
  mapfile -t -O "${#what[@]}" what < <(cd "$repository/tests" && "$work/bin/lab" build --missing kube operator ray)
  [ "${#what[@]}" -gt 0 ] || return 0
  say "Built first, and kept for the next time (times on two cores, if nothing is there yet):"
  printf '  %s\n' "${what[@]}"
}

# Builds what the lab needs in the background, with the lowest priority.
build_lab_meanwhile() {
  (cd "$repository/tests" && exec nice -n 19 "$work/bin/lab" build kube operator ray) >/dev/null 2>"$work/lab.log" &
  building=$!
  undo+=(stop_building)
}

stop_building() {
  [ -n "$building" ] || return 0
  kill "$building" 2>/dev/null
  wait "$building" 2>/dev/null
  building=
}

# On a new machine, what comes and how long it takes, and a denial before anything is built.
greet_new_machine() {
  [ -n "$build_rayfit" ] && [ ! -e "$binary" ] || return 0
  say "Rayfit is not built here yet: about 4 minutes on two cores. Kubernetes and Ray, if missing too: about 7 more"
  show_recorded_denial
}

# The output of `rayfit check` without a Rayfit.
show_recorded_denial() {
  say "How Rayfit denies examples/bad.yaml, as its tests have recorded it"
  printf '%s$ rayfit check examples/bad.yaml%s\n' "$bold" "$plain"
  sed '1,/^---$/d' "$repository/tests/shell/snapshots/shell__cli__the_example_of_the_demo.snap"
}

build_rayfit() {
  [ -n "$build_rayfit" ] || return 0
  make --silent -C "$repository" build
}

# The same, live, as soon as the program is built.
show_first_denial() {
  say "The first denial, without a cluster (this is what CI runs, with exit code 1)"
  (cd "$repository" && run_refused rayfit check examples/bad.yaml)
}

# A cluster of our own.

end_lab() {
  [ -d "$work/lab" ] || return 0
  echo "ending the lab .." >&2
  "$work/bin/lab" down --dir "$work/lab"
}

start_lab() {
  local code=0
  if kill -0 "$building" 2>/dev/null; then
    say "The rest is still being built"
    tail --pid="$building" -n +1 -f "$work/lab.log" >&2
  fi
  wait "$building" || code=$?
  building=
  [ "$code" = 0 ] || fail "building the lab has failed: $(cat "$work/lab.log")"
  say "A Kubernetes cluster on this machine, with KubeRay and Ray"
  undo+=(end_lab)
  "$work/bin/lab" up --dir "$work/lab" --nodes 1 --ray --with operator --rayfit-binary "$binary" >/dev/null
  export KUBECONFIG=$work/lab/kubeconfig PATH=$work/lab/bin:$PATH
  system=rayfit-system
  install=(--self-managed)
}

# A cluster of yours.

use_cluster() {
  [ -r "$RAYFIT_DEMO_KUBECONFIG" ] || fail "RAYFIT_DEMO_KUBECONFIG=$RAYFIT_DEMO_KUBECONFIG cannot be read"
  command -v kubectl >/dev/null || fail "kubectl is missing: https://kubernetes.io/docs/tasks/tools"
  KUBECONFIG=$(realpath "$RAYFIT_DEMO_KUBECONFIG")
  export KUBECONFIG
  local context
  context=$(kubectl config current-context) || fail "$KUBECONFIG has no current context"
  say "The cluster of context $context in $KUBECONFIG"
  kubectl version >/dev/null || fail "the cluster of context $context does not answer"
  refuse_to_disturb
  choose_image "$context"
  need_resources
  system=$demo-system
  install=(--self-managed --namespace "$system" --only-namespace "$demo" --image "$image")
  write_program
}

# The program `rayfit` as the cluster has it, in the image: what it prints comes from a pod of its own,
# and files are checked in the pod that serves, because the image has no shell to copy them into.
write_program() {
  cat >"$work/bin/rayfit" <<SH
#!/usr/bin/env bash
set -euo pipefail
if [ "\$1" = check ]; then
  exec kubectl exec -i -n $system deployment/rayfit -- /rayfit check - <"\$2"
fi
printf -v arguments '"%s", ' "\$@"
kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: rayfit, namespace: $demo}
spec:
  restartPolicy: Never
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: rayfit
    image: $image
    args: [\$arguments]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
YAML
kubectl wait pod/rayfit -n $demo --for=jsonpath='{.status.phase}'=Succeeded --timeout=120s >/dev/null
kubectl logs -n $demo rayfit
kubectl delete pod rayfit -n $demo --wait=false >/dev/null
SH
  chmod +x "$work/bin/rayfit"
}

# A Rayfit that is there already has the definition of RayPolicy, or webhooks, and a namespace may be somebody's.
refuse_to_disturb() {
  local object
  for object in "namespace/$demo" "namespace/$demo-system" customresourcedefinition/raypolicies.rayfit.dev \
    validatingwebhookconfiguration/rayfit-validating; do
    if kubectl get "$object" >/dev/null 2>&1; then
      fail "the cluster has a $object already, which the demo does not touch.
  Take another cluster, or look at the Rayfit that is installed there."
    fi
  done
}

choose_image() {
  image=${RAYFIT_DEMO_IMAGE:-}
  [ -z "$image" ] || return 0
  local version
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$repository/Cargo.toml" | head -n 1)
  image=rayfit:$version
  case $1 in
    kind-* | minikube*) ;;
    *) fail "context $1 is neither kind's nor minikube's, so no image can be loaded into it. Push
  one (make image) to where the cluster can pull it and write RAYFIT_DEMO_IMAGE=registry/rayfit:$version" ;;
  esac
  local archive=$repository/target/image/rayfit.tar what=docker-image from=$image
  rm -f "$archive"
  RAYFIT_IMAGE=$image "$repository/scripts/image.sh" build
  if [ -e "$archive" ]; then
    what=image-archive from=$archive
  fi
  case $1 in
    kind-*) kind load "$what" "$from" --name "${1#kind-}" ;;
    minikube*) minikube --profile "$1" image load "$from" ;;
  esac
}

remove_resources() {
  kubectl delete --ignore-not-found crd/rayclusters.ray.io
}

# Without KubeRay, its RayCluster alone.
need_resources() {
  ! kubectl get crd rayclusters.ray.io >/dev/null 2>&1 || return 0
  say "KubeRay is not installed there: its RayCluster resource, for the time of the demo"
  local version
  version=$(sed -n 's/.*KubeRayVersion *= "\(.*\)"/\1/p' "$repository/tests/lab/versions.go")
  resources=https://raw.githubusercontent.com/ray-project/kuberay/v$version/ray-operator/config/crd/bases/ray.io_rayclusters.yaml
  undo+=(remove_resources)
  run kubectl create -f "$resources"
  local attempt
  for attempt in $(seq 100); do
    kubectl get rayclusters --namespace default >/dev/null 2>&1 && return 0
    sleep 0.2
  done
  fail "after $attempt attempts the cluster does not serve RayClusters"
}

# What is shown.

uninstall() {
  [ -s "$work/installed.yaml" ] || return 0
  echo "uninstalling .." >&2
  kubectl delete --ignore-not-found -f "$work/installed.yaml" >/dev/null
}

remove_namespace() {
  kubectl delete namespace "$demo" --ignore-not-found >/dev/null
}

# The examples, suspended: no Ray nodes are to be started for them.
write_files() {
  local prepare="s/namespace: research/namespace: $demo/; s/^spec:/spec:\n  suspend: true/"
  sed "$prepare" "$repository/examples/bad.yaml" >bad.yaml
  sed "$prepare" "$repository/examples/good.yaml" >good.yaml
  sed 's/name: notebook/name: unbounded/; /maxReplicas: 10/d' good.yaml >unbounded.yaml
  sed 's/name: notebook/name: legacy/; s/minReplicas: 1/minReplicas: 20/' good.yaml >legacy.yaml
}

before_rayfit() {
  say "Without Rayfit: 20 workers at least and 10 at most. It is stored, and will never work."
  if [ -n "${RAYFIT_DEMO_KUBECONFIG:-}" ]; then
    undo+=(remove_namespace)
  fi
  run kubectl create namespace "$demo"
  run kubectl apply -f legacy.yaml
}

install_rayfit() {
  say "Install Rayfit: webhooks with certificates of their own, and the controller that scales clusters"
  if [ -n "${RAYFIT_DEMO_KUBECONFIG:-}" ]; then
    undo+=(uninstall)
  fi
  run "rayfit manifests ${install[*]} | tee installed.yaml | kubectl apply -f -"
  run kubectl rollout status "deployment/rayfit -n $system --timeout=120s"
  run kubectl rollout status "deployment/rayfit-controller -n $system --timeout=120s"
  until_judged
}

# API servers call new webhooks within a second or so; until then, objects are stored unchecked.
until_judged() {
  local attempt
  for attempt in $(seq 100); do
    kubectl apply --dry-run=server -f bad.yaml >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  fail "after $attempt attempts no object is checked: look at kubectl logs -n $system deployment/rayfit"
}

show() {
  say "A RayCluster with what goes wrong in practice (examples/bad.yaml): refused, with every reason at once"
  run_refused kubectl apply -f bad.yaml

  say "A good one (examples/good.yaml). First as a dry run, then for good"
  run kubectl apply -f good.yaml --dry-run=server
  run kubectl apply -f good.yaml

  say "What was sent, and what is stored: Rayfit has filled in what was missing
# (numOfHosts and replicas are KubeRay's own defaults)"
  kubectl apply view-last-applied -f good.yaml -o yaml | sed -n '/^spec:/,$p' >sent.yaml
  kubectl get -f good.yaml -o yaml | sed -n '/^spec:/,/^status:/p' | sed '/^status:/d' >stored.yaml
  run_refused diff -U 2 sent.yaml stored.yaml

  say "Not wrong, but risky: a warning, and it is stored"
  run kubectl apply -f unbounded.yaml

  say "Nobody is locked out: what was stored before Rayfit can be changed, whatever is wrong with it ..."
  run "kubectl annotate raycluster legacy -n $demo owner=ada"
  say "... but not made worse ..."
  run_refused "kubectl patch raycluster legacy -n $demo --type=json -p '[{\"op\": \"add\", \"path\": \"/spec/workerGroupSpecs/0/rayStartParams/num-cpus\", \"value\": \"2\"}]'"
  say "... and it can be mended"
  run "kubectl patch raycluster legacy -n $demo --type=json -p '[{\"op\": \"replace\", \"path\": \"/spec/workerGroupSpecs/0/minReplicas\", \"value\": 1}]'"

  say "The same checks without a cluster, for CI (exit code 1)"
  run_refused 'rayfit check bad.yaml | tail -n 1'
}

# A Ray cluster that works. In the lab images are names, and since many Ray nodes share one machine,
# each listens on its pod's address and the GCS on a port of its own.
write_live() {
  local port head worker
  most=2 head='num-cpus: "0"' worker=
  if [ -z "${RAYFIT_DEMO_KUBECONFIG:-}" ]; then
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    most=3 worker="node-ip-address: \$POD_IP, object-store-memory: \"100000000\""
    head+=", port: \"$port\", $worker"
  fi
  cat >live.yaml <<YAML
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: live
  namespace: $demo
  annotations:
    rayfit.dev/reconcile: central   # scaled by Rayfit, not by Ray's own autoscaler
    ray.io/ippr: |
      {"groups": {"cpu": {"max-cpu": "$most", "max-memory": "2Gi", "resize-timeout": 60}}}
spec:
  rayVersion: 2.60.0
  enableInTreeAutoscaling: true
  headGroupSpec:
    rayStartParams: {$head}
    template:
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.60.0
          resources: {limits: {cpu: "1", memory: 2Gi}}
  workerGroupSpecs:
  - groupName: cpu
    minReplicas: 1
    maxReplicas: 1
    rayStartParams: {$worker}
    template:
      spec:
        containers:
        - name: ray-worker
          image: rayproject/ray:2.60.0
          resources: {limits: {cpu: "1", memory: 2Gi}}
YAML
  cat >task.py <<PYTHON
import os, time, ray

address = os.environ.get("POD_IP", "127.0.0.1")
ray.init(f"{address}:{os.environ.get('RAY_PORT', 6379)}", _node_ip_address=os.environ.get("POD_IP"), log_to_driver=False, logging_level="error")

@ray.remote(num_cpus=$most)
def where():
    return os.environ["RAY_CLOUD_INSTANCE_ID"]

print("Ray has", ray.cluster_resources().get("CPU"), "CPUs; a task that needs $most ...", flush=True)
begin = time.time()
pod = ray.get(where.remote())
print(f"... has run {time.time() - begin:.1f} s later in pod {pod}")
PYTHON
}

show_growth() {
  write_live
  say "For real: a Ray cluster with one worker of one CPU, which may grow to $most. Rayfit scales it"
  run kubectl apply -f live.yaml
  run "kubectl wait --for=jsonpath={.status.state}=ready raycluster/live -n $demo --timeout=600s"
  local worker="kubectl get pods -n $demo -l ray.io/cluster=live,ray.io/node-type=worker"
  local columns=POD:.metadata.name,CPU:.status.containerStatuses[0].resources.limits.cpu,RESTARTS:.status.containerStatuses[0].restartCount
  run "$worker -o custom-columns='$columns'"

  say "A task that does not fit: the pod grows in place, without a restart, and the task runs in it"
  local head
  head=$(kubectl get pods -n "$demo" -l ray.io/cluster=live,ray.io/node-type=head -o name)
  run "kubectl exec -i -n $demo $head -c ray-head -- python - <task.py"
  run "$worker -o custom-columns='$columns'"
  run "kubectl get events -n $demo --field-selector involvedObject.name=live,reportingComponent=rayfit.dev/controller -o custom-columns=REASON:.reason,MESSAGE:.message"
  [ -n "${RAYFIT_DEMO_KUBECONFIG:-}" ] || run "rayfit status $demo/live"
}

look_further() {
  say "To look further"
  cat <<EOF
  rayfit is $program
  rayfit explain RF104            one rule in full; rayfit rules lists all
  rayfit check examples/bad.yaml  findings with line and column, also as JSON, SARIF, GitHub annotations
  rayfit manifests --help         install on a cluster of yours
  tests/lab/README.md             a lab that stays, to try more with kubectl
EOF
}

build_rayfit=
building=
mkdir -p "$work/bin"
export PATH=$work/bin:$PATH
if [ -n "${RAYFIT_DEMO_KUBECONFIG:-}" ]; then
  show_recorded_denial
  use_cluster
  program="in the image $image"
else
  [ $# -gt 0 ] || build_rayfit=yes
  greet_new_machine
  tell_what_is_built
  build_lab_meanwhile
  build_rayfit
  ln -s "$binary" "$work/bin/rayfit"
  show_first_denial
  start_lab
  program=$binary
fi
cd "$work"
write_files
before_rayfit
install_rayfit
show
if [ -z "${RAYFIT_DEMO_KUBECONFIG:-}" ] || [ -n "${RAYFIT_DEMO_RAY:-}" ]; then
  show_growth
fi
look_further
echo
