"""The application of the RayService, which its Ray finds on its Python path. A request takes
a second, and is answered with the version of the pod and the name of the replica."""

import asyncio
import os

from ray import serve


@serve.deployment(
    autoscaling_config={
        "min_replicas": 2,
        "max_replicas": 3,
        "target_ongoing_requests": 4,
        "upscale_delay_s": 0,
        # Longer than a busy machine falls behind with what the clients send.
        "downscale_delay_s": 10,
        "metrics_interval_s": 1,
        "look_back_period_s": 3,
    },
    max_ongoing_requests=100,
    ray_actor_options={"num_cpus": 1},
    logging_config={"enable_access_log": False},
)
class Answers:
    async def __call__(self, request):
        await asyncio.sleep(1)
        return f"{os.environ['VERSION']} {serve.get_replica_context().replica_id.unique_id}"


app = Answers.bind()
