"""Seeded random snapshots that meet every corner of the scheduler's behaviour."""
import base64
import json
import random

GI = 1 << 30
NOW = 1_768_392_000  # 2026-01-14T12:00:00Z
ZONES = ["a", "b", "c"]


def case(seed):
    """A snapshot and the settings to decide with."""
    made = Case(seed)
    return {"settings": made.settings, "snapshot": made.build()}


class Case:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.in_place = self.chance(0.5)
        self.labelled = self.chance(0.4)
        self.large = self.chance(0.06)
        self.settings = {"pendingIdleTimeoutS": self.pick(0, 30)} if self.chance(0.1) else {}
        self.pods, self.nodes = [], []

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *options):
        return self.random.choice(options)

    def between(self, low, high):
        return self.random.randint(low, high)

    def build(self):
        self.groups = [self.group(f"group-{number}") for number in range(self.between(1, 4))]
        cluster = self.cluster()
        self.add_pod(cluster["spec"]["headGroupSpec"], "headgroup", "head", running=self.chance(0.97))
        for group in self.groups:
            for _ in range(self.pick(10, 20, 30) if self.large else self.pick(0, 0, 1, 1, 2, 3, 5)):
                self.add_pod(group, group["groupName"], "worker", running=self.chance(0.75))
        if self.chance(0.02):
            self.add_pod(self.groups[0], "removed", "worker", running=self.chance(0.5))
        if self.chance(0.1):
            self.random.shuffle(self.pods)
        if self.chance(0.2):
            self.random.shuffle(self.nodes)
        return {
            "apiVersion": "rayfit.dev/v1alpha1",
            "kind": "Snapshot",
            "time": "2026-01-14T12:00:00Z",
            "rayCluster": cluster,
            "pods": self.pods,
            "gcs": self.gcs(),
            "history": self.history(),
        }

    # The RayCluster.

    def cluster(self):
        metadata = {"name": "c", "namespace": "default"}
        if self.in_place:
            metadata["annotations"] = {"ray.io/ippr": json.dumps(self.resize_limits())}
        options = {}
        if self.chance(0.4):
            options["idleTimeoutSeconds"] = self.pick(0, 10, 31, 60, 123, 300)
        if self.chance(0.4):
            options["upscalingMode"] = self.pick("Default", "Aggressive", "Conservative")
        head = {
            "rayStartParams": {"num-cpus": "0"} if self.chance(0.6) else {},
            "template": {"spec": {"containers": [self.container("ray-head", 1, 2 * GI)]}},
        }
        self.head = head
        spec = {"headGroupSpec": head, "workerGroupSpecs": self.groups}
        if options or self.chance(0.5):
            spec["autoscalerOptions"] = options
        return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}

    def resize_limits(self):
        groups = {}
        for group in self.groups:
            if self.chance(0.7) and "num-cpus" not in group["rayStartParams"] and "memory" not in group["rayStartParams"]:
                groups[group["groupName"]] = {
                    "max-cpu": self.pick("4", "8", 6, "1500m", 2.5, "16"),
                    "max-memory": self.pick("8Gi", "16Gi", "4Gi", 8 * GI, "3500M"),
                    "resize-timeout": self.pick(60, 300, 120),
                }
        if self.chance(0.1):
            groups["nobody"] = {"max-cpu": "1", "max-memory": "1Gi", "resize-timeout": 1}
        return {"groups": groups} if groups or self.chance(0.5) else {}

    def group(self, name):
        cpu, memory = self.pick(1, 1, 2, 4, 8, 0.5), self.pick(1, 2, 4, 8, 16) * GI
        low = self.pick(0, 0, 0, 1, 2)
        group = {
            "groupName": name,
            "minReplicas": low,
            "maxReplicas": low + self.pick(0, 1, 2, 3, 5, 10) * (5 if self.large else 1),
            "replicas": low + self.pick(0, 0, 1, 2),
            "rayStartParams": {},
            "template": {"spec": {"containers": [self.container("ray-worker", cpu, memory)]}},
        }
        if self.chance(0.08):
            group["numOfHosts"] = self.pick(2, 4)
        if self.chance(0.15):
            group["rayStartParams"]["num-cpus"] = str(self.pick(1, 2, 4))
        if self.chance(0.1):
            group["rayStartParams"]["resources"] = self.pick('\'{"a": 2}\'', '"{\\"a\\": 1, \\"b\\": 3}"')
        if self.chance(0.08):
            group["rayStartParams"]["memory"] = str(self.pick(1, 2) * GI)
        elif self.chance(0.08):
            group["resources"] = self.pick({"CPU": "3"}, {"CPU": "1500m", "a": "2"}, {"GPU": "2", "CPU": "4"}, {"memory": "2Gi"}, {"cpu": "7"})
        if self.labelled:
            group["labels"] = self.labels()
        if self.chance(0.25):
            group["idleTimeoutSeconds"] = self.pick(0, 5, 60, 600)
        if self.chance(0.3):
            group["priority"] = self.pick(-1, 1, 2, 10)
        if self.chance(0.05):
            group["scaleStrategy"] = {"workersToDelete": self.pick([], ["gone-1"])}
        return group

    def labels(self):
        labels = {}
        if self.chance(0.7):
            labels["zone"] = self.pick(*ZONES)
        if self.chance(0.4):
            labels["kind"] = self.pick("spot", "reserved")
        return labels

    def container(self, name, cpu, memory):
        cpu = f"{int(cpu * 1000)}m" if cpu != int(cpu) or self.chance(0.2) else str(cpu)
        memory = f"{memory // GI}Gi"
        resources = {"requests": {"cpu": cpu, "memory": memory}}
        form = self.random.random()
        if form < 0.5:
            resources["limits"] = {"cpu": cpu, "memory": memory}
        elif form < 0.75:
            resources["limits"] = {"cpu": cpu, "memory": memory}
            resources["requests"] = {"cpu": "500m", "memory": "512Mi"}
        elif form < 0.8 and not self.in_place:
            resources = {"limits": {"cpu": cpu}}
        if "limits" in resources:
            if self.chance(0.2):
                resources["limits"]["nvidia.com/gpu"] = self.pick("1", "2", 4, "0")
            if self.chance(0.05):
                resources["limits"]["google.com/tpu"] = "4"
        container = {"name": name, "resources": resources}
        if self.chance(0.2):
            container["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
        return container

    # Pods and Ray nodes.

    def add_pod(self, group, name, role, running):
        number = len(self.pods)
        pod_name = f"{name}-{self.random.getrandbits(16):04x}-{number}"
        container = json.loads(json.dumps(group["template"]["spec"]["containers"][0]))
        metadata = {
            "name": pod_name,
            "labels": {"ray.io/cluster": "c", "ray.io/node-type": role, "ray.io/group": name},
        }
        if self.chance(0.03) and role == "worker":
            metadata["deletionTimestamp"] = "2026-01-14T11:59:00Z"
        pod = {
            "metadata": metadata,
            "spec": {"containers": [container]},
            "status": {"phase": "Running" if running else "Pending"},
        }
        if running or self.chance(0.3):
            pod["status"]["containerStatuses"] = [{"name": container["name"], "state": {"running": {}}}]
        self.pods.append(pod)
        node_id = f"{self.random.getrandbits(224):056x}"
        size = None
        if self.in_place and self.chance(0.6):
            size = self.resized(pod, container, node_id)
        if running:
            self.add_node(group, name, role, pod_name, node_id, size)
        if running and role == "worker" and self.chance(0.05):
            self.nodes.append({"nodeId": encode(f"{self.random.getrandbits(224):056x}"), "instanceId": "vanished-1", "rayNodeTypeName": name, "status": "DEAD"})

    def resized(self, pod, container, node_id):
        """A pod somewhere on its way between sizes."""
        requests, limits = container["resources"].get("requests"), container["resources"].get("limits")
        if not requests:
            return None
        status = pod["status"].setdefault("containerStatuses", [{"name": container["name"], "state": {"running": {}}}])[0]
        current = json.loads(json.dumps(container["resources"]))
        if self.chance(0.7):
            status["resources"] = current
        if self.chance(0.3):
            pod["spec"]["containers"].append({"name": "sidecar"})
            other = {"name": "sidecar", "state": {"running": {}}}
            if self.chance(0.7):
                other["resources"] = {"requests": {"cpu": "100m", "memory": "256Mi"}}
            pod["status"]["containerStatuses"].append(other)
        grown = {"cpu": self.pick("2", "4", "6", "3400m", "1500m"), "memory": self.pick("4Gi", "8Gi", "6Gi")}
        kind = self.pick("asked", "done", "grown", "grown", "condition", "condition", "plain", "failed")
        for sizes in ([requests] + ([limits] if limits else [])):
            if kind in ("asked", "condition", "done", "grown"):
                sizes.update(grown)
        if kind in ("done", "grown") and "resources" in status:
            for sizes in current.values():
                sizes.update(grown)
        annotation = {
            "raylet-id": self.pick(node_id, node_id, None, "ff" * 28),
            "resizing-at": None,
            "suggested-max-cpu": None,
            "suggested-max-memory": None,
            "last-failed-at": None,
            "last-failed-reason": None,
        }
        if kind in ("asked", "condition", "done"):
            annotation["resizing-at"] = NOW - self.pick(1, 30, 100, 200, 1000) if self.chance(0.85) else None
        if self.chance(0.2):
            annotation["suggested-max-cpu"] = self.pick(3.4, 2.0, 5.0)
        if self.chance(0.2):
            annotation["suggested-max-memory"] = self.pick(5, 3) * GI
        if kind == "failed" or self.chance(0.05):
            annotation["last-failed-at"] = NOW - 1000
            annotation["last-failed-reason"] = "Pod resize timed out"
        if kind != "plain":
            pod["metadata"]["annotations"] = {"ray.io/ippr-status": json.dumps(annotation)}
        if kind == "condition" or self.chance(0.05):
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}, self.condition()]
        return grown if kind == "grown" else None

    def condition(self):
        requested, used, capacity = self.pick(4000, 8000), self.pick(2000, 5000, 9000), self.pick(8000, 6000)
        memory = self.chance(0.3)
        name, unit = ("memory", GI // 1000) if memory else ("cpu", 1)
        requested, used, capacity = requested * unit, used * unit, capacity * unit
        kind = self.random.random()
        if kind < 0.35:
            return {"type": "PodResizePending", "status": "True", "reason": "Deferred",
                    "message": f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"}
        if kind < 0.6:
            return {"type": "PodResizePending", "status": "True", "reason": "Infeasible",
                    "message": f"Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}"}
        if kind < 0.7:
            return {"type": "PodResizePending", "status": "True", "reason": self.pick("Deferred", "Other"), "message": "no"}
        if kind < 0.85:
            return {"type": "PodResizeInProgress", "status": "True"}
        if kind < 0.95:
            return {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": self.pick("it broke", "")}
        return {"type": "PodResizeInProgress", "status": "False", "reason": "Error"}

    def add_node(self, group, name, role, pod, node_id, size):
        resources = group["template"]["spec"]["containers"][0]["resources"]
        amounts = {**resources.get("requests", {}), **resources.get("limits", {}), **(size or {})}
        cpu = int(group["rayStartParams"].get("num-cpus", 0)) or -(-milli(amounts.get("cpu", "1")) // 1000)
        if role == "head":
            cpu = 0 if "num-cpus" in group["rayStartParams"] else 1
        total = {
            "CPU": float(cpu),
            "memory": float(self.pick(1, 1, 1, 0.5) * quantity(amounts.get("memory", "4Gi"))),
            "object_store_memory": float(self.pick(1, 2) * GI),
            f"node:10.0.0.{len(self.nodes)}": 1.0,
        }
        if role == "head":
            total["node:__internal_head__"] = 1.0
        if not cpu:
            del total["CPU"]
        if int(amounts.get("nvidia.com/gpu", 0)):
            total["GPU"] = float(amounts["nvidia.com/gpu"])
        if self.chance(0.1):
            total["a"] = 2.0
        busy = self.chance(0.5)
        available = dict(total)
        if busy:
            for key in ("CPU", "GPU", "memory", "object_store_memory", "a"):
                if key in available and self.chance(0.6):
                    available[key] = available[key] * self.pick(0, 0.25, 0.5, 0.75)
                    if available[key] == 0:
                        del available[key]
        status = self.random.random()
        labels = {"ray.io/node-id": node_id, "ray.io/node-group": name, **group.get("labels", {})}
        node = {
            "nodeId": encode(node_id),
            "instanceId": pod,
            "rayNodeTypeName": name,
            "totalResources": total,
            "availableResources": available,
            "labels": labels,
            "status": "RUNNING" if busy else "IDLE",
            "idleDurationMs": "0" if busy and self.chance(0.9) else str(self.pick(1000, 59000, 60001, 61000, 130000, 700000)),
        }
        if role == "worker" and status < 0.05:
            node["status"] = "DRAINING"
        elif role == "worker" and status < 0.08:
            node.update({"status": "DEAD", "totalResources": {}, "availableResources": {}})
        if self.chance(0.1):
            node["dynamicLabels"] = {f"_PG_{self.between(0, 1)}": ""}
        self.nodes.append(node)

    # Demand.

    def gcs(self):
        state = {"nodeStates": self.nodes}
        if self.chance(0.75):
            state["pendingResourceRequests"] = [
                {"request": self.request(task=True), "count": str(self.pick(1, 1, 2, 3, 5, 8, 20) * (10 if self.large else 1))}
                for _ in range(self.between(1, 4))
            ]
        if self.chance(0.4):
            state["pendingGangResourceRequests"] = [self.gang(number) for number in range(self.between(1, 3))]
        if self.chance(0.25):
            state["clusterResourceConstraints"] = [{
                "resourceRequests": [
                    {"request": self.request(task=False), "count": self.pick(1, 2, 4, 10)}
                    for _ in range(self.between(0, 3))
                ]
            }]
        return state

    def bundle(self):
        bundle = {}
        if self.chance(0.9):
            bundle["CPU"] = self.pick(1, 1, 1, 2, 2, 4, 0.5, 0.25, 8, 3, 0, 0.1 if self.chance(0.3) else 1)
        if self.chance(0.25):
            bundle["memory"] = self.pick(0.5, 1, 2, 4) * GI
        if self.chance(0.15):
            bundle["GPU"] = self.pick(1, 1, 0.5, 2, 0)
        if self.chance(0.1):
            bundle[self.pick("a", "b")] = self.pick(1, 2)
        if self.chance(0.03):
            bundle[f"node:10.0.0.{self.between(0, 4)}"] = 0.001
        if self.chance(0.03):
            bundle["node:__internal_implicit_resource_x"] = self.pick(1, 0.5)
        if self.chance(0.02):
            bundle["TPU"] = 4
        return bundle

    def request(self, task):
        request = {"resourcesBundle": self.bundle()}
        if task:
            request["labelSelectors"] = [{}]
        if self.labelled and self.chance(0.5):
            request["labelSelectors"] = [self.selector() for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.04):
            request["placementConstraints"] = [{"antiAffinity": {"labelName": "_PG_9", "labelValue": ""}}]
        return request

    def selector(self):
        constraints = []
        for _ in range(self.pick(1, 1, 2)):
            key = self.pick("zone", "zone", "kind", "ray.io/node-group", "none")
            values = {"zone": ZONES, "kind": ["spot", "reserved"], "none": ["x"],
                      "ray.io/node-group": [g["groupName"] for g in self.groups]}[key]
            constraints.append({
                "labelKey": key,
                "operator": self.pick("LABEL_OPERATOR_IN", "LABEL_OPERATOR_IN", "LABEL_OPERATOR_NOT_IN", "LABEL_OPERATOR_UNSPECIFIED" if self.chance(0.05) else "LABEL_OPERATOR_IN"),
                "labelValues": self.random.sample(values, self.between(1, min(2, len(values)))),
            })
        return {"labelConstraints": constraints}

    def gang(self, number):
        strategy = self.pick("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
        label = {"labelName": f"_PG_{number}", "labelValue": ""}
        same = self.bundle() if self.chance(0.6) else None
        selectors = [self.selector()] if self.labelled and self.chance(0.3) else []
        bundles = []
        for _ in range(self.between(1, 5)):
            bundle = {"resourcesBundle": dict(same or self.bundle())}
            if strategy == "STRICT_PACK":
                bundle["placementConstraints"] = [{"affinity": label}]
            if strategy == "STRICT_SPREAD":
                bundle["placementConstraints"] = [{"antiAffinity": label}]
            bundles.append(bundle)
        gang = {"requests": bundles, "details": f"{number:02x}:{strategy}|PENDING"}
        if self.chance(0.8):
            gang["bundleSelectors"] = [{"resourceRequests": [
                {**bundle, **({"labelSelectors": selectors} if selectors else {})} for bundle in bundles
            ]}]
        return gang

    # What is remembered.

    def history(self):
        if self.chance(0.5):
            return {}
        history, instances = {}, []
        alive = {node["instanceId"] for node in self.nodes if node["status"] in ("RUNNING", "IDLE")}
        dead = {node["instanceId"] for node in self.nodes if node["status"] == "DEAD"}
        for pod in self.pods:
            name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
            if labels["ray.io/node-type"] == "worker" and name in alive and self.chance(0.08):
                instances.append({"pod": name, "group": labels["ray.io/group"], "status": "StopRequested"})
            elif self.chance(0.6) and name not in dead:
                instances.append({"pod": name, "group": labels["ray.io/group"], "status": "Allocated"})
        for _ in range(self.pick(0, 0, 1, 2, 4, 12)):
            group = self.pick(*self.groups)["groupName"]
            instances.append({"group": group, "status": self.pick("Queued", "Requested")})
        if self.chance(0.3):
            self.random.shuffle(instances)
        history["instances"] = instances
        if self.chance(0.3):
            history["unavailable"] = {
                group["groupName"]: float(NOW - self.pick(1, 5, 30, 300, 700))
                for group in self.groups if self.chance(0.5)
            }
        if self.settings and self.chance(0.7):
            history["unneededSince"] = {
                group["groupName"]: sorted(float(NOW - self.pick(1, 20, 31, 100)) for _ in range(self.between(1, 3)))
                for group in self.groups if self.chance(0.6)
            }
        return history


def encode(node_id):
    return base64.b64encode(bytes.fromhex(node_id)).decode()


def milli(text):
    text = str(text)
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def quantity(text):
    text = str(text)
    for suffix, factor in (("Gi", GI), ("Mi", 1 << 20)):
        if text.endswith(suffix):
            return int(float(text[:-2]) * factor)
    return int(text)
