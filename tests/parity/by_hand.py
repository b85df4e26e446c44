"""Hand-made cases, one for each rule of Ray's scheduler that random snapshots meet rarely."""
import base64
import json

GI = 1 << 30


def group(name, cpu=1, memory=2, low=0, high=5, **more):
    resources = {"cpu": str(cpu), "memory": f"{memory}Gi", **more.pop("limits", {})}
    return {"groupName": name, "minReplicas": low, "maxReplicas": high, "replicas": low, "rayStartParams": {},
            "template": {"spec": {"containers": [{"name": "ray", "resources": {"requests": resources, "limits": resources}}]}}, **more}


def node(pod, of, total, free=None, idle=0, labels=None, **more):
    return {"nodeId": base64.b64encode(pod.encode().ljust(28, b".")).decode(), "instanceId": pod, "rayNodeTypeName": of,
            "totalResources": total, "availableResources": total if free is None else free, "labels": labels or {},
            "status": "IDLE" if idle else "RUNNING", "idleDurationMs": str(idle), **more}


def case(groups, nodes=(), pending=(), resize_limits=None, settings=None, history=None, options=None, **gcs):
    """`nodes`: Ray nodes with a pod each; `pending`: (pod, group) without one."""
    head = node("head", "headgroup", {"memory": 2.0 * GI, "node:__internal_head__": 1.0})
    names = [("head", "headgroup")] + [(n["instanceId"], n["rayNodeTypeName"]) for n in nodes] + list(pending)
    templates = {g["groupName"]: g["template"]["spec"] for g in groups}
    templates["headgroup"] = group("x")["template"]["spec"]
    pods = [{"metadata": {"name": pod, "labels": {"ray.io/cluster": "c", "ray.io/group": of,
                          "ray.io/node-type": "head" if of == "headgroup" else "worker"}},
             "spec": templates.get(of, templates["headgroup"]), "status": {"phase": "Running"}} for pod, of in names]
    cluster = {"metadata": {"name": "c", "namespace": "default"}, "spec": {
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": templates["headgroup"]}},
        "workerGroupSpecs": groups, "autoscalerOptions": options or {}}}
    if resize_limits:
        cluster["metadata"]["annotations"] = {"ray.io/ippr": json.dumps({"groups": {
            name: {"max-cpu": cpu, "max-memory": f"{memory}Gi", "resize-timeout": 300} for name, (cpu, memory) in resize_limits.items()}})}
    return {"settings": settings or {}, "snapshot": {
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z", "rayCluster": cluster,
        "pods": pods, "gcs": {"nodeStates": [head, *nodes], **gcs}, "history": history or {}}}


def tasks(*wanted):
    return [{"request": {"resourcesBundle": bundle, "labelSelectors": [{}]}, "count": count} for bundle, count in wanted]


def gang(bundles, kind=None, name="_PG_1", **more):
    constraint = {} if kind is None else {"placementConstraints": [{kind: {"labelName": name, "labelValue": ""}}]}
    return {"requests": [{"resourcesBundle": bundle, **constraint} for bundle in bundles], **more}


def zone(*values, operator="LABEL_OPERATOR_IN"):
    return {"labelConstraints": [{"labelKey": "zone", "operator": operator, "labelValues": list(values)}]}


ONE = {"CPU": 1.0, "memory": 2.0 * GI}


def cases():
    yield "equal groups take turns", case([group("a"), group("b")], pendingResourceRequests=tasks(({"CPU": 1}, 5)))
    yield "priority only breaks ties", case([group("a", 2), group("b", 2, priority=5), group("c", 4, priority=9)], pendingResourceRequests=tasks(({"CPU": 2}, 3)))
    yield "an empty request launches a node", case([group("a")], pendingResourceRequests=tasks(({}, 1)))
    yield "three tenths do not fit", case([group("a", high=2, resources={"CPU": "1", "x": "1"})], nodes=[node("a-1", "a", {"x": 0.3, "CPU": 1.0})], pendingResourceRequests=tasks(({"x": 0.1}, 3)))
    yield "pending is preferred to running", case([group("a")], nodes=[node("a-1", "a", ONE, idle=70000)], pending=[("a-2", "a")], pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "a launch without a pod counts at base size", case([group("a")], resize_limits={"a": ("4", 8)}, history={"instances": [{"group": "a", "status": "Requested"}]}, pendingResourceRequests=tasks(({"CPU": 1}, 8)))
    yield "the minimum has base size", case([group("a", low=1)], resize_limits={"a": ("4", 8)}, pendingResourceRequests=tasks(({"CPU": 1}, 4)))
    yield "the constraint is all or nothing", case([group("a", high=2)], nodes=[node("a-1", "a", ONE, idle=70000)], clusterResourceConstraints=[{"resourceRequests": tasks(({"CPU": 1}, 3))}])
    yield "the constraint sees totals", case([group("a")], nodes=[node("a-1", "a", ONE, free={}, idle=70000)], clusterResourceConstraints=[{"resourceRequests": tasks(({"CPU": 1}, 2))}])
    yield "an empty constraint", case([group("a")], nodes=[node("a-1", "a", ONE, idle=70000)], clusterResourceConstraints=[{}])
    yield "strict pack is summed", case([group("a", 2), group("b", 4)], pendingGangResourceRequests=[gang([{"CPU": 1}] * 4, "affinity")])
    yield "strict spread avoids its own nodes", case([group("a", 4)], nodes=[node("a-1", "a", {"CPU": 4.0}, dynamicLabels={"_PG_1": ""})], pendingGangResourceRequests=[gang([{"CPU": 1}] * 3, "antiAffinity")])
    yield "two constraints on a bundle abort Ray", case([group("a")], pendingGangResourceRequests=[{"requests": [{"resourcesBundle": {"CPU": 1}, "placementConstraints": [{"affinity": {"labelName": "x"}}, {"antiAffinity": {"labelName": "y"}}]}]}])
    yield "harder gangs first", case([group("a", 2, high=2)], pendingGangResourceRequests=[gang([{"CPU": 2}]), gang([{"CPU": 1}] * 2, "antiAffinity", "_PG_2"), gang([{"CPU": 1}] * 3)])
    yield "bundle selectors win over requests", case([group("a", 2)], pendingGangResourceRequests=[gang([{"CPU": 9}], bundleSelectors=[{"resourceRequests": [{"resourcesBundle": {"CPU": 1}}]}])])
    yield "selectors with a fallback", case([group("a", labels={"zone": "a"}), group("b", labels={"zone": "b"}, high=1)], pendingResourceRequests=[{"request": {"resourcesBundle": {"CPU": 1}, "labelSelectors": [zone("b"), zone("a")]}, "count": 3}])
    yield "not in holds without the label", case([group("a"), group("b", labels={"zone": "b"})], pendingResourceRequests=[{"request": {"resourcesBundle": {"CPU": 1}, "labelSelectors": [zone("b", operator="LABEL_OPERATOR_NOT_IN")]}, "count": 2}])
    yield "an unknown operator never holds", case([group("a", labels={"zone": "a"})], pendingResourceRequests=[{"request": {"resourcesBundle": {"CPU": 1}, "labelSelectors": [zone("a", operator="LABEL_OPERATOR_UNSPECIFIED")]}, "count": 1}])
    yield "node labels are no group labels", case([group("a")], nodes=[node("a-1", "a", ONE, labels={"ray.io/node-group": "a"})], pendingResourceRequests=[{"request": {"resourcesBundle": {"CPU": 1}, "labelSelectors": [{"labelConstraints": [{"labelKey": "ray.io/node-group", "operator": "LABEL_OPERATOR_IN", "labelValues": ["a"]}]}]}, "count": 2}])
    yield "gpus are conserved", case([group("gpu", 4, limits={"nvidia.com/gpu": "1"}), group("cpu", 4, high=1)], pendingResourceRequests=tasks(({"CPU": 4}, 2), ({"CPU": 1, "GPU": 0}, 1), ({"GPU": 1}, 1)))
    yield "a maximum takes pending nodes first", case([group("a", high=1)], nodes=[node("a-1", "a", ONE, idle=5000), node("a-2", "a", ONE, free={"CPU": 0.5})], pending=[("a-3", "a")])
    yield "demand may go to a node that goes", case([group("a", high=1)], nodes=[node("a-1", "a", ONE, idle=5000), node("a-2", "a", ONE, free={})], pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "idle is strictly more than the timeout", case([group("a", idleTimeoutSeconds=60), group("b", idleTimeoutSeconds=0)], nodes=[node("a-1", "a", ONE, idle=60000), node("a-2", "a", ONE, idle=60001), node("b-1", "b", ONE, idle=1)])
    yield "31 seconds there and back", case([group("a")], nodes=[node("a-1", "a", ONE, idle=31000), node("a-2", "a", ONE, idle=31001)], options={"idleTimeoutSeconds": 31})
    yield "the minimum stays though idle", case([group("a", low=1)], nodes=[node("a-1", "a", ONE, idle=90000), node("a-2", "a", ONE, idle=120000)])
    yield "pending and unneeded", case([group("a")], pending=[("a-1", "a"), ("a-2", "a"), ("a-3", "a")], settings={"pendingIdleTimeoutS": 30}, history={"unneededSince": {"a": [1768391900.0, 1768391990.0]}})
    yield "ten launches in a round", case([group("a", high=30), group("b", 8, high=30)], pendingResourceRequests=tasks(({"CPU": 1}, 12), ({"CPU": 8}, 6)))
    yield "requested launches count", case([group("a", high=30)], history={"instances": [{"group": "a", "status": "Requested"}] * 7}, pendingResourceRequests=tasks(({"CPU": 1}, 20)))
    yield "conservative", case([group("a", high=30)], nodes=[node("a-1", "a", ONE, free={}), node("a-2", "a", ONE, free={})], options={"upscalingMode": "Conservative"}, pendingResourceRequests=tasks(({"CPU": 1}, 9)))
    yield "requested rows take the last pod", case([group("a")], pending=[("a-1", "a"), ("a-2", "a")], history={"instances": [{"group": "a", "status": "Requested"}] * 3}, pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "a node asked to stop counts as empty", case([group("a", 2)], nodes=[node("a-1", "a", {"CPU": 2.0}, free={"CPU": 1.0})], history={"instances": [{"group": "a", "pod": "a-1", "status": "StopRequested"}]}, pendingResourceRequests=tasks(({"CPU": 2}, 1)))
    yield "groups that failed come later", case([group("a"), group("b")], history={"unavailable": {"a": 1768391999.0, "b": 1768391400.0}}, pendingResourceRequests=tasks(({"CPU": 1}, 3)))
    yield "growing goes straight to the cap", case([group("a")], nodes=[node("a-1", "a", ONE, free={}), node("a-2", "a", ONE, free={})], resize_limits={"a": ("4", 8)}, pendingResourceRequests=tasks(({"CPU": 1}, 2)))
    yield "a cap may be lower than the size", case([group("a", 2, 4)], nodes=[node("a-1", "a", {"CPU": 2.0, "memory": 4.0 * GI}, free={"memory": 4.0 * GI})], resize_limits={"a": ("4", 2)}, pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "hosts are launched in slices", case([group("a", numOfHosts=4, high=2)], pendingResourceRequests=tasks(({"CPU": 1}, 5)))
    yield "a group called headgroup", case([group("headgroup", 2), group("a")], pendingResourceRequests=tasks(({"CPU": 2}, 2)))
    yield "only a group called headgroup", case([group("headgroup", 2)], pendingResourceRequests=tasks(({"CPU": 2}, 2)))
    yield "a thousand with a capital K", case([group("a", resources={"CPU": "1", "x": "1K"})], pendingResourceRequests=tasks(({"x": 600}, 2)))
    yield "two groups of one name", case([group("a", 1), group("b"), group("a", 4)], pendingResourceRequests=tasks(({"CPU": 4}, 2)))
    yield "TPU slices have a head resource", case([{**group("tpu", 8, limits={"google.com/tpu": "4"}), "template": {"spec": {"nodeSelector": {"cloud.google.com/gke-tpu-topology": "2x2x2", "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"}, "containers": group("x", 8, limits={"google.com/tpu": "4"})["template"]["spec"]["containers"]}}}], pendingResourceRequests=tasks(({"TPU-v4-16-head": 1}, 1), ({"TPU": 4}, 2)))
    yield "a removed group aborts Ray", case([group("a")], nodes=[node("old-1", "old", ONE)], pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "more free than there is aborts Ray", case([group("a")], nodes=[node("a-1", "a", {"CPU": 1.0}, free={"CPU": 2.0})], pendingResourceRequests=tasks(({"CPU": 1}, 1)))
    yield "implicit resources", case([group("a")], pendingResourceRequests=tasks(({"node:__internal_implicit_resource_x": 0.5}, 3)))
