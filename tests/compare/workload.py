"""The workloads of the scripts, for the driver in a head pod. It runs in the driver's
own names (tests/scaling/driver.py), so that Ray sends what is defined here to
workers by value. Each attempt at a task checks in when it begins, under its batch
and its number, and again when it has ended, under the batch's name with -ended."""

import threading

retries = 3

# Serve asks replicas how long their queues are, and takes no answer within 0.1 s, which is
# little on a machine where others start, for too long a queue.
os.environ["RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S"] = "1"
# Replicas tell the controller of their load, not the clients' handle: by the handle's reports
# Serve of Ray 2.60.0 often did not grow within a minute of a load of six times its target.
counted = {"env_vars": {"RAY_SERVE_COLLECT_AUTOSCALING_METRICS_ON_HANDLE": "0"}}
os.environ |= counted["env_vars"]


def run_once(batch, number, seconds):
    check_in(f"{batch}/{number}/{uuid.uuid4()}", batch)
    time.sleep(seconds)
    check_in(f"{batch}-ended/{number}/{uuid.uuid4()}", f"{batch}-ended")


def in_background(do):
    """Ray's calls that wait must not keep the driver from its next order."""
    threading.Thread(target=do, daemon=True).start()


def mix(batch, group, kinds):
    """Starts tasks of several kinds at once: (how many, CPUs of each, seconds that it takes)."""
    once = ray.remote(max_retries=retries)(run_once)
    number = 0
    for count, cpus, seconds in kinds:
        for _ in range(count):
            kept.setdefault(batch, []).append(once.options(num_cpus=cpus, resources={group: 1}).remote(batch, number, seconds))
            number += 1


def gang(batch, group, bundles, cpus, seconds, strategy):
    """Makes a placement group, runs a task in each of its bundles, and removes it."""
    made = placement_group([{"CPU": cpus, group: 1}] * bundles, strategy=strategy)
    once = ray.remote(max_retries=retries)(run_once)
    tasks = [
        once.options(
            num_cpus=cpus,
            scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=made, placement_group_bundle_index=i),
        ).remote(batch, i, seconds)
        for i in range(bundles)
    ]

    def remove():
        try:
            ray.get(tasks)
        finally:
            remove_placement_group(made)

    in_background(remove)


@ray.remote(max_restarts=retries, max_task_retries=retries)
class Pooled:
    def work(self, batch, number, seconds):
        run_once(batch, number, seconds)


def pool(batch, group, actors, items, seconds):
    """Makes actors of one CPU that share items among them, and ends the actors."""
    from ray.util import ActorPool

    members = [Pooled.options(num_cpus=1, resources={group: 1}).remote() for _ in range(actors)]

    def share():
        shared = ActorPool(members)
        for number in range(items):
            shared.submit(lambda actor, number: actor.work.remote(batch, number, seconds), number)
        while shared.has_next():
            shared.get_next_unordered()
        # Nobody has a handle any more, so Ray ends the actors.
        members.clear()

    in_background(share)


# What Serve's clients have found, by batch: [how long each request waited, how many failed].
answered = {}
deployed = threading.Lock()
service = None


def handle(group, seconds):
    """The handle of a deployment that scales itself, made by who asks first. Its delays
    are short, so that a phase of load fits into some tens of seconds."""
    global service
    with deployed:
        if service is None:
            import asyncio

            from ray import serve

            @serve.deployment(
                num_replicas="auto",
                autoscaling_config={
                    "min_replicas": 1,
                    "max_replicas": 6,
                    "target_ongoing_requests": 2,
                    "upscale_delay_s": 0,
                    "downscale_delay_s": 10,
                    "metrics_interval_s": 1,
                    "look_back_period_s": 3,
                },
                ray_actor_options={"num_cpus": 1, "resources": {group: 1}, "runtime_env": counted},
                logging_config={"enable_access_log": False},
            )
            class Service:
                def __init__(self):
                    self.turn = asyncio.Lock()

                async def __call__(self):
                    # One at a time, as where a request needs the replica's core.
                    async with self.turn:
                        await asyncio.sleep(seconds)

            serve.start(proxy_location="Disabled", controller_options={"runtime_env": counted})
            service = serve.run(Service.bind(), name="service", route_prefix=None)
        return service


def load(batch, group, clients, requests, seconds):
    """Starts clients, each of which sends so many requests, one after the other. A
    request takes so many seconds; what is beyond that, it has waited."""
    waited, failed = answered[batch] = [[], []]

    def client():
        for _ in range(requests):
            asked = time.monotonic()
            try:
                handle(group, seconds).remote().result(timeout_s=90)
                waited.append(time.monotonic() - asked - seconds)
            except Exception as error:
                failed.append(repr(error))

    for _ in range(clients):
        in_background(client)
