"""What Ray 2.60.0 decides on a snapshot, by Ray's own code.

Config derivation, KubeRay provider, in-place-resize provider, instance reconciliation and
scheduler are Ray's. Only their surroundings are ours: a Kubernetes client that serves the
snapshot's objects, a GCS client that says yes, and the clock, which stands at the snapshot's
time. Maps of running nodes are handed over in the order of their keys, because Ray itself
leaves that order to a hash table.
"""
import copy
import datetime
import json
import logging
import time
import types

from google.protobuf.json_format import ParseDict

from ray._common.utils import binary_to_hex
from ray.autoscaler._private.kuberay.autoscaling_config import (
    _derive_autoscaling_config_from_ray_cr,
)
from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import (
    KubeRayProvider,
)
from ray.autoscaler.v2.instance_manager.common import InstanceUtil
from ray.autoscaler.v2.instance_manager.config import AutoscalingConfig
from ray.autoscaler.v2.instance_manager.instance_manager import InstanceManager
from ray.autoscaler.v2.instance_manager.instance_storage import InstanceStorage
from ray.autoscaler.v2.instance_manager.reconciler import Reconciler
from ray.autoscaler.v2.instance_manager.storage import InMemoryStorage
from ray.autoscaler.v2.instance_manager.subscribers.cloud_resource_monitor import (
    CloudResourceMonitor,
)
from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
from ray.autoscaler.v2.schema import AutoscalerInstance
from ray.core.generated.autoscaler_pb2 import ClusterResourceState
from ray.core.generated.instance_manager_pb2 import Instance, TerminationRequest

logging.disable(logging.CRITICAL)
REAL_TIME = (time.time, time.time_ns, time.monotonic)


class Kubernetes:
    """Serves the snapshot's objects and keeps the patches."""

    def __init__(self, cluster, pods):
        self.cluster, self.pods, self.patches = cluster, pods, []

    def get(self, path):
        if path.startswith("rayclusters/"):
            return copy.deepcopy(self.cluster)
        return {"metadata": {"resourceVersion": "1"}, "items": copy.deepcopy(self.pods)}

    def patch(self, path, payload, content_type="application/json-patch+json"):
        self.patches.append((path, payload))
        return {}


class Gcs:
    """Says yes to every resize."""

    def __init__(self):
        self.resized = []

    def resize_raylet_resource_instances(self, node_id, resources):
        self.resized.append((node_id, resources))
        return resources


def stop_clock(seconds):
    # Every reading is a little later, so that rows keep their order.
    ticks = [0]

    def nanoseconds():
        ticks[0] += 1
        return int(seconds * 1e9) + ticks[0]

    time.time = lambda: seconds
    time.time_ns = nanoseconds
    time.monotonic = lambda: seconds


def start_clock():
    time.time, time.time_ns, time.monotonic = REAL_TIME


def answer(case):
    """Ray's decision, or {"abort": why} where Ray gives up the whole round."""
    snapshot = case["snapshot"]
    seconds = datetime.datetime.fromisoformat(snapshot["time"].replace("Z", "+00:00")).timestamp()
    stop_clock(seconds)
    try:
        return decide(snapshot, case.get("settings", {}))
    except Exception as error:  # whatever aborts Ray's loop
        return {"abort": f"{type(error).__name__}: {error}"[:200]}
    finally:
        start_clock()


def decide(snapshot, settings):
    cluster = snapshot["rayCluster"]
    config = AutoscalingConfig(_derive_autoscaling_config_from_ray_cr(cluster), skip_content_hash=True)
    kubernetes, gcs = Kubernetes(cluster, snapshot.get("pods", [])), Gcs()
    provider = KubeRayProvider(cluster["metadata"]["name"], {"namespace": "default"}, gcs, kubernetes)
    pods = provider.get_non_terminated()
    # Ray tells the raylet, then notes it on the pod.
    syncs = sorted(
        [path.removeprefix("pods/"), round(to["CPU"] * 1000), int(to["memory"])]
        for (path, _), (_, to) in zip(kubernetes.patches, gcs.resized, strict=True)
    )
    state = ParseDict(snapshot.get("gcs", {}), ClusterResourceState(), ignore_unknown_fields=True)
    manager = instances(snapshot, state, pods, config)
    rows = Reconciler._get_im_instances(manager)[0]
    history = snapshot.get("history", {})
    request = scheduling_request(rows, state, config, provider, monitor(history))
    # RAY_AUTOSCALER_PENDING_NODE_IDLE_TIMEOUT_S, which Ray reads once; off by default.
    request.pending_idle_timeout_s = settings.get("pendingIdleTimeoutS")
    scheduler = ResourceDemandScheduler()
    scheduler._pending_unneeded_since_s = copy.deepcopy(history.get("unneededSince", {}))
    reply = scheduler.schedule(request)
    head = Reconciler._is_head_node_running(manager)
    # A node that is leaving may be told its size too; that changes nothing.
    seen = {row.cloud_instance_id for row in rows if InstanceUtil.is_ray_running_reachable(row.status)}
    result = {"headRunning": head, "syncs": [sync for sync in syncs if sync[0] in seen]}
    result.update(unmet(state, reply))
    result["groups"] = {
        name: [kind.min_worker_nodes, kind.max_worker_nodes, dict(kind.resources)]
        for name, kind in config.get_node_type_configs().items()
    }
    if head:
        result.update(actions(rows, reply, config, provider, kubernetes))
    return result


def instances(snapshot, state, pods, config):
    """The instance table as it settles: what is remembered, then two rounds of reconciling."""
    storage = InstanceStorage("parity", InMemoryStorage())
    alive = {
        node.instance_id: binary_to_hex(node.node_id)
        for node in state.node_states
        if node.status not in (0, 2)
    }
    for number, row in enumerate(snapshot.get("history", {}).get("instances", [])):
        status = {
            "Queued": Instance.QUEUED,
            "Requested": Instance.REQUESTED,
            "Allocated": Instance.ALLOCATED,
            "StopRequested": Instance.RAY_STOP_REQUESTED,
        }[row["status"]]
        instance = InstanceUtil.new_instance(f"row-{number}", row["group"], Instance.QUEUED)
        InstanceUtil._record_status_transition(instance, status, "")
        instance.status = status
        instance.launch_request_id = "" if status == Instance.QUEUED else "launch"
        if row.get("pod"):
            instance.cloud_instance_id = row["pod"]
            if row["pod"] in pods:
                instance.node_kind = pods[row["pod"]].node_kind
                instance.instance_type = pods[row["pod"]].node_type
            if status == Instance.RAY_STOP_REQUESTED:
                instance.node_id = alive.get(row["pod"], "00" * 28)
        version = storage.get_instances()[1]
        storage.upsert_instance(instance, expected_storage_version=version)
    manager = InstanceManager(storage, [])
    for _ in range(2):
        Reconciler._sync_from(manager, state.node_states, pods, [], [], [], config)
        Reconciler._handle_missing_ray_nodes(manager, state.node_states)
    return manager


def monitor(history):
    result = CloudResourceMonitor()
    result._last_unavailable_timestamp = dict(history.get("unavailable", {}))
    return result


def in_key_order(node):
    """The node with its maps in the order of their keys."""
    if node is None:
        return None
    return types.SimpleNamespace(
        total_resources=dict(sorted(node.total_resources.items())),
        available_resources=dict(sorted(node.available_resources.items())),
        labels=dict(node.labels),
        dynamic_labels=dict(node.dynamic_labels),
        idle_duration_ms=node.idle_duration_ms,
    )


def scheduling_request(rows, state, config, provider, monitored):
    nodes = {binary_to_hex(node.node_id): node for node in state.node_states}
    return SchedulingRequest(
        node_type_configs=config.get_node_type_configs(),
        max_num_nodes=config.get_max_num_nodes(),
        resource_requests=state.pending_resource_requests,
        gang_resource_requests=state.pending_gang_resource_requests,
        cluster_resource_constraints=state.cluster_resource_constraints,
        current_instances=[
            AutoscalerInstance(
                ray_node=in_key_order(nodes.get(row.node_id)),
                im_instance=row,
                cloud_instance_id=row.cloud_instance_id or None,
            )
            for row in rows
        ],
        idle_timeout_s=config.get_idle_timeout_s(),
        disable_launch_config_check=config.disable_launch_config_check(),
        cloud_resource_availabilities=monitored.get_resource_availabilities(),
        recoverable_resource_availabilities=monitored.get_recoverable_resource_availabilities(),
        ippr_specs=provider.get_ippr_specs(),
        ippr_statuses=provider.get_ippr_statuses(),
    )


def counted(wanted, left):
    """How many of each are left, by the position of the first equal one."""
    first = {}
    for position, request in enumerate(wanted):
        first.setdefault(request.SerializeToString(deterministic=True), position)
    counts = {}
    for request in left:
        position = first[request.SerializeToString(deterministic=True)]
        counts[position] = counts.get(position, 0) + 1
    return sorted([position, count] for position, count in counts.items())


def unmet(state, reply):
    return {
        "tasks": counted([by.request for by in state.pending_resource_requests], reply.infeasible_resource_requests),
        "gangs": counted(state.pending_gang_resource_requests, reply.infeasible_gang_resource_requests),
        "constraints": len(reply.infeasible_cluster_resource_constraints),
    }


def actions(rows, reply, config, provider, kubernetes):
    of_row = {row.instance_id: row for row in rows}
    drains, deletes, cancels = [], [], {}
    for termination in reply.to_terminate:
        row = of_row[termination.instance_id]
        cause = TerminationRequest.Cause.Name(termination.cause)
        if row.status == Instance.RAY_RUNNING:
            drains.append([row.cloud_instance_id, cause])
        elif row.status == Instance.ALLOCATED:
            deletes.append([row.cloud_instance_id, cause])
        elif row.status in (Instance.QUEUED, Instance.REQUESTED):
            cancels[row.instance_type] = cancels.get(row.instance_type, 0) + 1
    launch = {request.instance_type: request.count for request in reply.to_launch}
    now = launches(rows, reply, config)
    resizes = sorted(
        [status.cloud_instance_id, round(status.desired_cpu * 1000), int(status.desired_memory)]
        for status in reply.to_ippr
    )
    provider.do_ippr_requests(reply.to_ippr)
    return {
        "drains": sorted(drains),
        "deletes": sorted(deletes),
        "cancels": cancels,
        "launch": launch,
        "launchNow": {name: count for name, count in now.items() if count},
        "resizes": resizes,
        "replicas": replicas(rows, now, deletes, provider, kubernetes),
    }


def launches(rows, reply, config):
    gone = {termination.instance_id for termination in reply.to_terminate}
    queued = [row for row in rows if row.status == Instance.QUEUED and row.instance_id not in gone]
    for request in reply.to_launch:
        for _ in range(request.count):
            queued.append(InstanceUtil.new_instance(InstanceUtil.random_instance_id(), request.instance_type, Instance.QUEUED))
    chosen = Reconciler._compute_to_launch(
        queued,
        [row for row in rows if row.status == Instance.REQUESTED],
        [row for row in rows if row.status == Instance.RAY_RUNNING and row.instance_id not in gone],
        config.get_upscaling_speed(),
        config.get_max_concurrent_launches(),
    )
    return {name: len(of_type) for name, of_type in chosen.items()}


def replicas(rows, now, deletes, provider, kubernetes):
    """What Ray writes into `replicas`, or None where it writes in more than one patch."""
    stopped = [row.cloud_instance_id for row in rows if row.status == Instance.RAY_STOPPED
               and row.cloud_instance_id in provider.instances]
    going = [pod for pod, _ in deletes] + stopped
    now = {name: count for name, count in now.items() if count}
    if bool(now) == bool(going) or "headgroup" in now:
        return None
    kubernetes.patches.clear()
    if now:
        provider.launch(now, "launch")
    else:
        provider.terminate(going, "terminate")
    if provider.poll_errors() and not kubernetes.patches:
        return None
    written = {}
    for _, patch in kubernetes.patches:
        for operation in patch if isinstance(patch, list) else []:
            parts = operation["path"].split("/")
            if parts[-1] == "replicas":
                group = kubernetes.cluster["spec"]["workerGroupSpecs"][int(parts[3])]
                written[group["groupName"]] = operation["value"]
    return written


if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), sort_keys=True), flush=True)
