"""Ray's own decisions over several rounds, in which its table of instances is kept.

    $(tests/parity/python.sh) tests/parity/rounds.py

writes `rounds.jsonl.gz` beside this one, or into the folder that is named: random sequences of snapshots without history, each with what
Ray drains, deletes and launches. All of a wave of work ends at once, so many nodes have been idle for
equally long, and the order of the table decides which of them go. The GCS reports nodes in another
order each time, as a hash table does, and pods are listed by name.
"""

import datetime
import gzip
import json
import os
import pathlib
import random
import string
import sys

import by_hand
import ray_answer as ray
from google.protobuf.json_format import ParseDict
from ray.autoscaler.v2.instance_manager.subscribers.cloud_resource_monitor import CloudResourceMonitor

CASES = 60
ROUNDS = 14
SECONDS = 5
START = datetime.datetime(2026, 1, 14, 12, tzinfo=datetime.timezone.utc)
STATUS = ray.Instance.InstanceStatus.Name


class World:
    """What KubeRay, the kubelets and the jobs make of Ray's decisions."""

    def __init__(self, draw):
        self.draw, self.now = draw, START
        self.groups = [
            {"name": name, "cpu": draw.choice([1, 2]), "low": draw.choice([0, 1, 2, 3]), "high": draw.choice([5, 8, 14])}
            for name in ("a", "b")[: draw.choice([1, 1, 2])]
        ]
        self.timeout = draw.choice([5, 10, 20])
        self.pods, self.due = {}, {}

    def pod(self, of):
        name = f"{of}-" + "".join(self.draw.choices(string.ascii_lowercase, k=5))
        self.pods[name] = {"group": of, "joined": None, "idle_since": None, "goes": False}

    def move(self):
        """What happens until the next round."""
        draw = self.draw
        for name in [name for name, pod in self.pods.items() if pod["goes"]]:
            del self.pods[name]
        for group in self.groups:
            # A launch takes some time, and sometimes somebody else asks for a pod.
            due = self.due.get(group["name"], 0)
            made = sum(draw.random() < 0.7 for _ in range(due))
            self.due[group["name"]] = due - made
            for _ in range(made + (draw.random() < 0.05)):
                self.pod(group["name"])
            # Ray's loop aborts where a maximum forces out a launch that has no pod yet.
            if draw.random() < 0.05 and not self.due[group["name"]]:
                group["high"] = max(group["low"], group["high"] - draw.choice([1, 3]))
        self.now += datetime.timedelta(seconds=SECONDS)
        begins, ends = draw.random() < 0.35, draw.random() < 0.5
        for pod in self.pods.values():
            if pod["joined"] is None:
                if draw.random() < 0.7:
                    pod["joined"], pod["idle_since"] = self.now, self.now
            elif begins and draw.random() < 0.9:
                pod["idle_since"] = None
            elif ends and pod["idle_since"] is None:
                pod["idle_since"] = self.now - datetime.timedelta(seconds=2)

    def snapshot(self):
        draw, nodes, pending = self.draw, [], []
        for name, pod in sorted(self.pods.items()):
            cpu = next(group["cpu"] for group in self.groups if group["name"] == pod["group"])
            if pod["joined"] is None or pod["goes"]:
                pending.append((name, pod["group"]))
                continue
            total = {"CPU": float(cpu), "memory": 2.0 * by_hand.GI}
            since = pod["idle_since"]
            idle = 0 if since is None else round((self.now - since).total_seconds() * 1000) or 1
            free = total if since else {**total, "CPU": 0.0}
            nodes.append(by_hand.node(name, pod["group"], total, free=free, idle=idle))
        groups = []
        for group in self.groups:
            there = sum(pod["group"] == group["name"] and not pod["goes"] for pod in self.pods.values())
            spec = by_hand.group(group["name"], cpu=group["cpu"], low=group["low"], high=group["high"])
            spec["replicas"] = there + self.due.get(group["name"], 0)
            groups.append(spec)
        wanted = [({"CPU": 1.0}, draw.randint(1, 9))] if draw.random() < 0.45 else []
        case = by_hand.case(
            groups, nodes=nodes, pending=pending, options={"idleTimeoutSeconds": self.timeout},
            pendingResourceRequests=by_hand.tasks(*wanted))["snapshot"]
        case["pods"].sort(key=lambda pod: pod["metadata"]["name"])
        draw.shuffle(case["gcs"]["nodeStates"])
        case["time"] = self.now.isoformat().replace("+00:00", "Z")
        del case["history"]
        return case


class Autoscaler:
    """Ray's, without what it asks others to do."""

    def __init__(self):
        self.manager = ray.InstanceManager(ray.InstanceStorage("parity", ray.InMemoryStorage()), [])
        self.scheduler, self.monitor = ray.ResourceDemandScheduler(), CloudResourceMonitor()

    def table(self):
        return {row.instance_id: row for row in ray.Reconciler._get_im_instances(self.manager)[0]}

    def round(self, snapshot, seconds):
        ray.stop_clock(seconds)
        try:
            cluster = snapshot["rayCluster"]
            config = ray.AutoscalingConfig(
                ray._derive_autoscaling_config_from_ray_cr(cluster), skip_content_hash=True)
            kubernetes = ray.Kubernetes(cluster, snapshot["pods"])
            provider = ray.KubeRayProvider("c", {"namespace": "default"}, ray.Gcs(), kubernetes)
            before = {key: STATUS(row.status) for key, row in self.table().items()}
            state = ParseDict(snapshot["gcs"], ray.ClusterResourceState(), ignore_unknown_fields=True)
            ray.Reconciler.reconcile(
                self.manager, self.scheduler, provider, self.monitor, state, provider.get_non_terminated(), config)
            table = self.table()
            newly = lambda status: [
                row for key, row in table.items() if STATUS(row.status) == status and before.get(key) != status]
            launches = {}
            for row in newly("REQUESTED"):
                launches[row.instance_type] = launches.get(row.instance_type, 0) + 1
            # Where Ray has stopped, the pod is deleted in any case.
            begun = [row for row in newly("TERMINATING")
                     if before.get(row.instance_id) in (None, "REQUESTED", "ALLOCATED")]
            return {
                "drains": sorted(row.cloud_instance_id for row in newly("RAY_STOP_REQUESTED")),
                "deletes": sorted(row.cloud_instance_id for row in begun),
                "launchNow": launches,
            }
        finally:
            ray.start_clock()


def case(seed):
    world, autoscaler, rounds = World(random.Random(seed)), Autoscaler(), []
    for _ in range(ROUNDS):
        world.move()
        snapshot = world.snapshot()
        answer = autoscaler.round(snapshot, world.now.timestamp())
        rounds.append({"snapshot": snapshot, "ray": answer})
        for name in answer["drains"] + answer["deletes"]:
            world.pods[name]["goes"] = True
        for name, count in answer["launchNow"].items():
            world.due[name] = world.due.get(name, 0) + count
    return rounds


def main():
    # Ray's ids are random and decide nothing; the order of a hash table would.
    if os.environ.get("PYTHONHASHSEED") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "1"})
    lines = "".join(json.dumps(case(seed), separators=(",", ":")) + "\n" for seed in range(CASES))
    path = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent) / "rounds.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
