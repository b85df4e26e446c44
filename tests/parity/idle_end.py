"""Ray's own answers to when a cluster that nobody uses ends (`spec.idleTerminationOptions`).

    $(tests/parity/python.sh) tests/parity/idle_end.py

writes `idle-end.json` beside this one, or into the folder that is named: random sequences of what the GCS says of drivers, each with the
rounds in which Ray's KubeRay provider applies its policy. Its clock is played.
"""

import json
import pathlib
import random
import sys
import time
from types import SimpleNamespace

from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import KubeRayProvider

CASES = 40
ROUNDS = 25
NAMESPACES = ["", "mine", "_ray_internal_dashboard"]


def job(draw, now):
    dead = draw.random() < 0.7
    return {
        "namespace": draw.choice(NAMESPACES),
        "isDead": dead,
        "endTime": int((now - draw.choice([0, 1, 30])) * 1000) if dead else 0,
    }


def case(seed):
    draw = random.Random(seed)
    provider = KubeRayProvider.__new__(KubeRayProvider)
    provider._cluster_name = "demo"
    provider._no_driver_observed_since = None
    provider._last_seen_job_end_time = 0
    ended = []
    provider._apply_idle_termination_policy = lambda: ended.append(True)
    timeout = draw.choice([0, 5, 20, 20.5])
    provider._ray_cluster = {"spec": {"idleTerminationOptions": {"timeoutSeconds": timeout}}}
    provider._refresh_idle_termination_config()
    now, jobs, rounds = 1_000_000.0, [], []
    for _ in range(ROUNDS):
        now += draw.choice([1, 5])
        if draw.random() < 0.15:
            jobs.append(job(draw, now))
        # The GCS forgets jobs, too.
        del jobs[:-2]
        for one in jobs:
            if not one["isDead"] and draw.random() < 0.4:
                one.update(isDead=True, endTime=int(now * 1000))
        fails = draw.random() < 0.03

        def table(**_):
            if fails:
                raise RuntimeError("the GCS does not answer")
            return {
                i: SimpleNamespace(
                    config=SimpleNamespace(ray_namespace=one["namespace"]), is_dead=one["isDead"], end_time=one["endTime"]
                )
                for i, one in enumerate(jobs)
            }

        provider._gcs_client = SimpleNamespace(get_all_job_info=table)
        time.monotonic = lambda: now
        ended.clear()
        provider._evaluate_idle_termination()
        shown = None if fails else [dict(one) for one in jobs]
        rounds.append({"now": now, "jobs": shown, "ends": bool(ended)})
    return {"timeoutSeconds": timeout, "rounds": rounds}


text = json.dumps([case(seed) for seed in range(CASES)], separators=(",", ":"))
(pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent) / "idle-end.json").write_text(text + "\n")
