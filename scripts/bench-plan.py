#!/usr/bin/env python3
"""Rayfit's planner beside Ray 2.60.0's scheduler: same machine, same input, one run.

    scripts/bench-plan.sh [--limit 300] [--nodes 10,100] [--demands 100,1000] [--scenarios idle] [--sizes 1250x25000x50]

Every point is a snapshot of one head and N workers of 16 CPU and 64 GiB, all free (idle), none
free (busy) or 0 to 16 free (mixed, seeded), and D tasks: half {CPU: 1}, a quarter {CPU: 2,
memory: 4 GiB}, 15 % {CPU: 4}, 10 % {CPU: 8}. Ray's time is that of `schedule()` alone, in a fresh
process; Rayfit's is that of `decide()` in strategy Ray, which reads the configuration, views the
nodes and explains itself as well. The launches must be the same.
"""
import argparse
import base64
import itertools
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time

GIB = 1 << 30
SHAPES = [({"CPU": 1.0}, 50), ({"CPU": 2.0, "memory": 4.0 * GIB}, 25), ({"CPU": 4.0}, 15), ({"CPU": 8.0}, 10)]
SIZES = "2500x50000x50,5000x50000x50,10000x50000x50,2500x100000x50,2500x200000x50,2500x50000x100,2500x50000x200,5000x100000x50,20000x1000000x200"
SEED = 20261120
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def snapshot(scenario, nodes, demands, shapes=SHAPES):
    seeded = random.Random(SEED)
    pods, states = [], []

    def add(number, group, role, cpu, free):
        name, node_id = f"pod-{group}-{number:05d}", seeded.getrandbits(224).to_bytes(28, "big")
        pods.append({"metadata": {"name": name, "labels": {"ray.io/node-type": role, "ray.io/group": group}}})
        total = {"memory": 64.0 * GIB, "object_store_memory": 16.0 * GIB, f"node:10.0.{number // 250}.{number % 250}": 1.0}
        if cpu:
            total["CPU"] = float(cpu)
        if role == "head":
            total["node:__internal_head__"] = 1.0
        available = {**total, "CPU": float(free)} if free else {k: v for k, v in total.items() if k != "CPU"}
        states.append({
            "nodeId": base64.b64encode(node_id).decode(), "instanceId": name, "rayNodeTypeName": group,
            "totalResources": total, "availableResources": available,
            "status": "IDLE" if free == cpu else "RUNNING", "idleDurationMs": "1000" if free == cpu else "0",
            "labels": {"ray.io/node-id": node_id.hex(), "ray.io/node-group": group},
        })

    add(0, "headgroup", "head", 0, 0)
    for number in range(nodes):
        mixed = seeded.randint(0, 16)
        add(number, "cpu16", "worker", 16, {"idle": 16, "busy": 0, "mixed": mixed}[scenario])
    weight = sum(share for _, share in shapes)
    return {
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": {"metadata": {"name": "bench", "namespace": "default"}, "spec": {
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template(1, "8Gi")},
            "workerGroupSpecs": [group("cpu16", 1), group("cpu16b", 0), group("gpu", 0, 4)],
        }},
        "pods": pods,
        "gcs": {"nodeStates": states, "pendingResourceRequests": [
            {"request": {"resourcesBundle": shape, "labelSelectors": [{}]}, "count": str(demands * share // weight)}
            for shape, share in shapes
        ]},
    }


def template(cpu, memory, gpu=0):
    limits = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": gpu} if gpu else {})}
    return {"spec": {"containers": [{"name": "ray", "resources": {"limits": limits}}]}}


def group(name, priority, gpu=0):
    return {"groupName": name, "minReplicas": 0, "maxReplicas": 100000, "replicas": 0, "priority": priority,
            "rayStartParams": {}, "template": template(16, "64Gi", gpu)}


def ray_child(path):
    """Ray's schedule() on a snapshot, timed."""
    import logging
    import resource

    from google.protobuf.json_format import ParseDict
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
    from ray.autoscaler.v2.instance_manager.config import AutoscalingConfig
    from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
    from ray.autoscaler.v2.schema import AutoscalerInstance
    from ray.core.generated.autoscaler_pb2 import ClusterResourceState
    from ray.core.generated.instance_manager_pb2 import Instance, NodeKind

    logging.disable(logging.CRITICAL)
    with open(path) as file:
        made = json.load(file)
    config = AutoscalingConfig(_derive_autoscaling_config_from_ray_cr(made["rayCluster"]), skip_content_hash=True)
    state = ParseDict(made["gcs"], ClusterResourceState())
    instances = [
        AutoscalerInstance(cloud_instance_id=node.instance_id, ray_node=node, im_instance=Instance(
            instance_id=f"im-{node.instance_id}", cloud_instance_id=node.instance_id, node_id=node.node_id.hex(),
            status=Instance.RAY_RUNNING, instance_type=node.ray_node_type_name,
            node_kind=NodeKind.HEAD if node.ray_node_type_name == "headgroup" else NodeKind.WORKER))
        for node in state.node_states
    ]
    request = SchedulingRequest(
        disable_launch_config_check=True, node_type_configs=config.get_node_type_configs(),
        max_num_nodes=config.get_max_num_nodes(), idle_timeout_s=60.0,
        resource_requests=state.pending_resource_requests, current_instances=instances)
    scheduler = ResourceDemandScheduler()
    start = time.perf_counter()
    reply = scheduler.schedule(request)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "launch": {r.instance_type: r.count for r in reply.to_launch},
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


def run_ray(python, path, limit):
    try:
        done = subprocess.run([python, os.path.abspath(__file__), "--ray", path], capture_output=True, text=True, timeout=limit + 20)
        return json.loads(done.stdout) if done.returncode == 0 else sys.exit(done.stderr[-800:])
    except subprocess.TimeoutExpired:
        return None


def run_rayfit(binary, strategy, path):
    done = subprocess.run([binary, strategy, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def many_shapes(count):
    """Distinct shapes of 1 to 8 CPU and 1 to some GiB, equally wanted."""
    return [({"CPU": float(1 + n % 8), "memory": float((1 + n // 8) * GIB)}, 1) for n in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ray", metavar="SNAPSHOT", help="time Ray on one snapshot, in this process")
    parser.add_argument("--python", help="a Python with ray==2.60.0")
    parser.add_argument("--binary", help="the compiled benches/plan.rs")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one of Ray's decisions; it is stopped then, and not asked for anything larger")
    parser.add_argument("--nodes", default="10,100,500,1000,2000")
    parser.add_argument("--demands", default="100,1000,10000")
    parser.add_argument("--scenarios", default="idle,mixed,busy")
    parser.add_argument("--sizes", default=SIZES, help="nodes x tasks x shapes, for Rayfit alone")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs"))
    options = parser.parse_args()
    if options.ray:
        return ray_child(options.ray)
    commit = subprocess.run([os.path.join(ROOT, "scripts/commit.sh")], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        points = list(grid(options, os.path.join(folder, "snapshot.json")))
        sizes = list(large(options, os.path.join(folder, "snapshot.json")))
    write(options.out, points, sizes, options.limit, commit)


def grid(options, path):
    too_long = []
    for scenario in options.scenarios.split(","):
        for demands in map(int, options.demands.split(",")):
            for nodes in map(int, options.nodes.split(",")):
                with open(path, "w") as file:
                    json.dump(snapshot(scenario, nodes, demands), file)
                ours = run_rayfit(options.binary, "ray", path)
                skip = any(s == scenario and n <= nodes and d <= demands for s, n, d in too_long)
                ray = None if skip else run_ray(options.python, path, options.limit)
                if not ray and not skip:
                    too_long.append((scenario, nodes, demands))
                if ray and ray["launch"] != ours["launch"]:
                    sys.exit(f"{scenario} {nodes} x {demands}: Ray launches {ray['launch']}, Rayfit {ours['launch']}")
                point = {"scenario": scenario, "nodes": nodes, "demands": demands, "ray": ray, "ours": ours}
                print(json.dumps(point), flush=True)
                yield point


def large(options, path):
    for nodes, demands, shapes in (map(int, size.split("x")) for size in options.sizes.split(",")):
        with open(path, "w") as file:
            json.dump(snapshot("mixed", nodes, demands, many_shapes(shapes)), file)
        for strategy in ("ray", "rayfit"):
            point = {"nodes": nodes, "demands": demands, "shapes": shapes, "strategy": strategy, **run_rayfit(options.binary, strategy, path)}
            print(json.dumps(point), flush=True)
            yield point


def doublings(sizes):
    """Pairs of decisions of one strategy, of which the second has twice as much of one thing, and that thing."""
    things = ("nodes", "demands", "shapes")
    for what in things:
        for p, q in itertools.product(sizes, sizes):
            same = all(p[other] == q[other] for other in things if other != what)
            if same and p["strategy"] == q["strategy"] and q[what] == 2 * p[what]:
                yield p, q, what


def seconds(value):
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.3g} ms"


def write(folder, points, sizes, limit, commit):
    rows = ["| nodes | tasks | free | Ray 2.60.0 | Rayfit, first | Rayfit, median | times faster | new nodes | Ray MiB | Rayfit MiB |", "|---|---|---|---|---|---|---|---|---|---|"]
    for p in points:
        ray, ours = p["ray"], p["ours"]
        told = seconds(ray["seconds"]) if ray else f"> {limit:.0f} s, stopped"
        faster = f"{ray['seconds'] / ours['first_s']:,.0f}" if ray else f"> {limit / ours['first_s']:,.0f}"
        rows.append(f"| {p['nodes']} | {p['demands']} | {p['scenario']} | {told} | {seconds(ours['first_s'])} | {seconds(ours['median_s'])} | {faster} | {sum(ours['launch'].values())} | {ray['peak_mib'] if ray else '-'} | {ours['peak_mib']} |")
    more = ["| nodes | tasks | shapes | strategy | first | median | new nodes | MiB, snapshot included | MiB for deciding |", "|---|---|---|---|---|---|---|---|---|"]
    for p in sizes:
        more.append(f"| {p['nodes']} | {p['demands']} | {p['shapes']} | {p['strategy']} | {seconds(p['first_s'])} | {seconds(p['median_s'])} | {sum(p['launch'].values())} | {p['peak_mib']} | {p['deciding_mib']} |")
    growth = ["| what doubles | strategy | from | to | median | exponent |", "|---|---|---|---|---|---:|"]
    for p, q, what in doublings(sizes):
        exponent = math.log2(q["median_s"] / p["median_s"])
        growth.append(f"| {what} | {p['strategy']} | {p[what]} | {q[what]} | {seconds(p['median_s'])} to {seconds(q['median_s'])} | {exponent:.2f} |")
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    text = f"""{BEGIN}
## Planner

`make bench-plan` ran on {time.strftime('%Y-%m-%d')} at {commit} on {os.cpu_count()} cores of {cpu}, Python {platform.python_version()}, with
a load average of {LOAD:.0f} when it began. One process per point and side, one after the other. Ray's time is `ResourceDemandScheduler.schedule()` alone; Rayfit's is the
whole decision in strategy `ray`, with configuration, view and report. Both launch the same nodes in every row that Ray finished.

![Seconds for one decision, all nodes free](benchmarks-plan.svg)

{chr(10).join(rows)}

Larger than Ray can be timed at, half-used nodes:

{chr(10).join(more)}

What a decision costs grows with the power of its size that is the exponent: 1 where twice as much takes twice as long.

{chr(10).join(growth)}
{END}
"""
    path = os.path.join(folder, "benchmarks.md")
    old = open(path).read() if os.path.exists(path) else "# Benchmarks\n\n"
    if BEGIN in old:
        old = old[: old.index(BEGIN)] + old[old.index(END) + len(END) + 1 :]
    with open(path, "w") as file:
        file.write(old.rstrip("\n") + "\n\n" + text)
    with open(os.path.join(folder, "benchmarks-plan.svg"), "w") as file:
        file.write(plot([p for p in points if p["scenario"] == "idle"]))


LOAD = os.getloadavg()[0]
BEGIN, END = "<!-- bench-plan -->", "<!-- /bench-plan -->"
COLOURS = {100: "#1b9e77", 1000: "#d95f02", 10000: "#7570b3"}


def plot(points):
    """Log-log lines, one per number of tasks: Ray dashed, Rayfit solid."""
    width, height, left, bottom = 720, 420, 70, 50
    low, high = -6, 3
    x = lambda nodes: left + (math.log10(nodes) - 1) / 2.4 * (width - left - 150)
    y = lambda value: height - bottom - (math.log10(value) - low) / (high - low) * (height - bottom - 20)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#fff"/>']
    for power in range(low, high + 1):
        name = {-6: "1 µs", -3: "1 ms", 0: "1 s"}.get(power, "")
        out.append(f'<line x1="{left}" x2="{width - 140}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#ddd"/><text x="{left - 8}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{name}</text>')
    for nodes in sorted({p["nodes"] for p in points}):
        out.append(f'<text x="{x(nodes):.1f}" y="{height - bottom + 18}" text-anchor="middle">{nodes}</text>')
    out.append(f'<text x="{(left + width - 140) / 2}" y="{height - 12}" text-anchor="middle">nodes, all free</text>')
    for demands in sorted({p["demands"] for p in points}):
        of = sorted((p for p in points if p["demands"] == demands), key=lambda p: p["nodes"])
        for side, dash in (("ray", "6 4"), ("ours", "none")):
            line = [(x(p["nodes"]), y(p["ray"]["seconds"] if side == "ray" else p["ours"]["first_s"])) for p in of if p[side]]
            if not line:
                continue
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in line)
            name = "Ray" if side == "ray" else "Rayfit"
            colour = COLOURS.get(demands, "#333")
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
            out.append(f'<text x="{line[-1][0] + 6:.1f}" y="{line[-1][1] + 4:.1f}" fill="{colour}">{name}, {demands} tasks</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


if __name__ == "__main__":
    main()
