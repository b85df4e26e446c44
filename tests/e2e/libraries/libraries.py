"""What users run of Ray's libraries, for the driver in a head pod. It is run in the
driver's own names (tests/scaling/driver.py), so that Ray sends what is defined here to
workers by value."""

patient = {
    "env_vars": {
        # Replicas tell Serve's controller of their load, not the clients' handle: by the
        # handle's reports Serve often does not grow within a minute, whoever scales.
        "RAY_SERVE_COLLECT_AUTOSCALING_METRICS_ON_HANDLE": "0",
        # What Serve gives up is made for machines that are not busy: a replica that does not
        # say within 0.1 s how long its queue is, and a proxy that does not start or answer
        # within seconds.
        "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "1",
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "100",
        "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "100",
    }
}
os.environ |= patient["env_vars"]
# Train begins again with workers that have not started after a minute.
os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "300"
# Data asks for resources every ten seconds, after the rates that it has measured.
os.environ["RAY_DATA_MIN_GAP_BETWEEN_AUTOSCALING_REQUESTS"] = "2"


def deploy(port, replicas):
    """Deploys an application whose replicas scale with its load, behind a proxy in the
    head pod. Its delays are short, so that phases of load fit into a test, but longer than
    a busy machine falls behind with what the clients send: Serve stops a replica that
    still starts, so that one that is wanted off and on never answers. A request takes a
    second, and is answered with the name of its replica."""
    import asyncio
    import contextlib

    from ray import serve

    @serve.deployment(
        autoscaling_config={
            "min_replicas": 1,
            "max_replicas": replicas,
            "target_ongoing_requests": 2,
            "upscale_delay_s": 0,
            "downscale_delay_s": 10,
            "metrics_interval_s": 1,
            "look_back_period_s": 3,
        },
        # A replica counts what it works on, so the first one has to take all that come.
        max_ongoing_requests=100,
        ray_actor_options={"num_cpus": 1, "runtime_env": patient},
        logging_config={"enable_access_log": False},
    )
    class Answers:
        async def __call__(self, request):
            await asyncio.sleep(1)
            return serve.get_replica_context().replica_id.unique_id

    # After a minute it gives up waiting for its proxy, which comes all the same.
    with contextlib.suppress(TimeoutError):
        serve.start(
            proxy_location="HeadOnly",
            http_options={"host": os.environ["POD_IP"], "port": port},
            controller_options={"runtime_env": patient},
        )
    while {str(proxy.value) for proxy in serve.status().proxies.values()} != {"HEALTHY"}:
        time.sleep(1)
    serve.run(Answers.bind(), name="answers", route_prefix="/")


def end_serve():
    from ray import serve

    serve.shutdown()


def work(batch, seconds):
    """Works for so many seconds, and checks in when it begins and when it has ended."""
    check_in(f"{batch}-{uuid.uuid4()}", batch)
    time.sleep(seconds)
    check_in(f"{batch}-ended-{uuid.uuid4()}", f"{batch}-ended")


def data(blocks, actors):
    """Runs a pipeline of a task for each block and of a pool of two actors or more, each
    of which takes a second with a block. The last block's task does not end before it may."""
    import ray.data

    def prepared(batch):
        work("data-tasks", 1)
        if blocks - 1 in batch["id"]:
            check_in("data-last", "data-last")
        return batch

    class Model:
        def __call__(self, batch):
            work("data-actors", 1)
            return {"square": batch["id"] ** 2}

    rows = (
        ray.data.range(blocks, override_num_blocks=blocks)
        .map_batches(prepared, batch_size=None, num_cpus=1)
        # With as many CPUs as the tasks, Data would make one operator of both.
        .map_batches(Model, batch_size=None, num_cpus=0.75, compute=ray.data.ActorPoolStrategy(min_size=2, max_size=actors))
        .take_all()
    )
    return sorted(row["square"] for row in rows) == [number**2 for number in range(blocks)]


def told_by_data():
    """By Data's own log: how many CPUs its autoscaler has asked for at the most, and how
    many CPUs it has counted at the most."""
    import glob
    import re

    asked, counted = 0, 0
    for log in glob.glob("/tmp/ray/session_latest/logs/ray-data/*.log"):
        for line in open(log):
            if "Sending resource request: " in line:
                bundles = re.findall(r"\[{'CPU': ([\d.]+)[^\]]*\] \* (\d+)", line)
                asked = max(asked, sum(float(cpus) * int(count) for cpus, count in bundles))
            for cpus in re.findall(r"requested resources: [\d.]+/([\d.]+) CPU", line):
                counted = max(counted, float(cpus))
    return asked, counted


def tune_all(trials):
    """Tries a grid of so many trials. None ends before it may."""
    from ray import tune

    def trial(config):
        check_in(f"tune-{uuid.uuid4()}", "tune")
        tune.report({"square": config["number"] ** 2})

    results = tune.Tuner(
        tune.with_resources(trial, {"cpu": 1}),
        param_space={"number": tune.grid_search(list(range(trials)))},
        run_config=tune.RunConfig(name="tune", storage_path="/tmp/tune", verbose=0),
    ).fit()
    return len(results.errors), sorted(result.metrics["square"] for result in results)


def train_all(workers):
    """Trains by so many workers at once, each of which fits a line to rows of its own and
    waits for the others. None ends before it may. PyTorch is not needed for it."""
    import ray.train
    import ray.train.collective
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    def fit():
        import numpy

        context = ray.train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
        check_in(f"train-{uuid.uuid4()}", "train")
        xs = numpy.arange(rank, 1000, size)
        slope = round(float(numpy.polyfit(xs, 3 * xs + 1, 1)[0]), 3)
        ray.train.report({"slope": slope})
        ray.train.collective.barrier()
        check_in(f"train-ended-{uuid.uuid4()}", "train-ended")
        return slope, size

    return (
        DataParallelTrainer(
            fit,
            scaling_config=ray.train.ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            run_config=ray.train.RunConfig(name="train", storage_path="/tmp/train"),
        )
        .fit()
        .return_value
    )
