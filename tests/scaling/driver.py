"""The script inside the head pod. It reads code, one JSON string a line, runs it
with the names below, and answers each with one JSON line."""

import faulthandler
import hashlib
import json
import os
import socket
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
import uuid

import ray
from ray.autoscaler.sdk import request_resources  # noqa: F401  (for the code)
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

board, cluster, how = sys.argv[1:4]
kept = {}


def check_in(name, batch):
    """Says that a task works, and returns when it may end."""
    name, batch = f"{cluster}:{name}", f"{cluster}:{batch}"
    query = urllib.parse.urlencode({"name": name, "batch": batch, "pod": os.environ["RAY_CLOUD_INSTANCE_ID"]})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(f"{board}/?{query}", timeout=3600).read()


# A task that dies with its node must not come back: that would hide it.
task = ray.remote(max_retries=0)(check_in)


@ray.remote(max_restarts=0, max_task_retries=0)
class Actor:
    def work(self, name, batch):
        check_in(name, batch)


@ray.remote(max_restarts=1, max_task_retries=-1)
class Keeper:
    """An actor that is made again where its node goes."""

    def pod(self):
        return os.environ["RAY_CLOUD_INSTANCE_ID"]


@ray.remote
def large():
    """An object that stays on the node where it was made, until somebody wants it."""
    return b"x" * (4 << 20)


def keep(batch, **options):
    """Starts an actor, and makes an object beside it; returns the actor's pod."""
    actor, thing = Keeper.options(**options).remote(), large.options(**options).remote()
    kept[batch] = [actor, thing]
    ray.wait([thing], fetch_local=False)
    return ray.get(actor.pod.remote())


def keeps(batch):
    """The pod of such an actor, and the size of the object."""
    actor, thing = kept[batch]
    return ray.get(actor.pod.remote(), timeout=60), len(ray.get(thing, timeout=60))


def hold(batch, count, **options):
    """Starts tasks that work until the batch is let go."""
    kept.setdefault(batch, []).extend(task.options(**options).remote(f"{batch}-{i}", batch) for i in range(count))


def hold_actors(batch, count, **options):
    """Starts actors, each of which works until the batch is let go."""
    actors = [Actor.options(**options).remote() for _ in range(count)]
    kept.setdefault(batch, []).extend(actors)
    kept[batch].extend(a.work.remote(f"{batch}-{i}", batch) for i, a in enumerate(actors))


@ray.remote(max_retries=5)
def attempt(batch, seconds):
    check_in(f"{batch}-{uuid.uuid4()}", batch)
    time.sleep(seconds)
    check_in(f"{batch}-ended-{uuid.uuid4()}", f"{batch}-ended")


def nap(batch, count, seconds, **options):
    """Starts tasks that take so many seconds and begin again where they are lost.
    Each attempt checks in, and under the batch's name with -ended at its end."""
    kept.setdefault(batch, []).extend(attempt.options(**options).remote(batch, seconds) for _ in range(count))


@ray.remote(max_retries=0)
def climber(batch, mebibytes, a_second):
    held = []
    while len(held) * 16 < mebibytes:
        held.append(b"x" * (16 << 20))
        time.sleep(16 / a_second)
    check_in(batch, batch)
    del held[len(held) // 8 :]
    check_in(f"{batch}-less", f"{batch}-less")


def climb(batch, mebibytes, a_second, **options):
    """Starts a task that uses ever more memory, so many mebibytes more a second. It
    checks in when it is there; then it frees most of it, and checks in under
    the batch's name with -less."""
    kept.setdefault(batch, []).append(climber.options(**options).remote(batch, mebibytes, a_second))


# For how many seconds the time on CPUs is summed up.
WINDOW = 2


@ray.remote(max_retries=0)
def burner(threads, windows):
    def burn():
        while not done.is_set():
            # Without Python's lock, so that threads run beside each other.
            hashlib.pbkdf2_hmac("sha256", b"burnt", b"nothing", 20_000)

    done, rates = threading.Event(), []
    for _ in range(threads):
        threading.Thread(target=burn, daemon=True).start()
    for _ in range(windows):
        begun, used = time.monotonic(), time.process_time()
        time.sleep(WINDOW)
        rates.append((time.process_time() - used) / (time.monotonic() - begun))
    done.set()
    return rates


def burn(threads, windows, **options):
    """Has a task of several threads compute, and returns how many CPUs it used in each window."""
    return ray.get(burner.options(**options).remote(threads, windows))


def fate(batch):
    """How a task ended: "well", or the name of what was raised."""
    try:
        ray.get(kept[batch])
    except ray.exceptions.RayError as error:
        return type(error).__name__
    return "well"


def group(batch, bundles, strategy):
    """Makes a placement group with a task in each of its bundles."""
    made = placement_group(bundles, strategy=strategy)
    kept[batch] = [made]
    for i, bundle in enumerate(bundles):
        where = PlacementGroupSchedulingStrategy(placement_group=made, placement_group_bundle_index=i)
        kept[batch].append(task.options(num_cpus=bundle["CPU"], scheduling_strategy=where).remote(f"{batch}-{i}", batch))


def drop(batch):
    """Forgets a batch, its actors and its placement group."""
    for one in kept.pop(batch, []):
        if isinstance(one, PlacementGroup):
            remove_placement_group(one)


def answer(**fields):
    # One write: Ray's threads print too, and print() writes the end of a line by itself.
    sys.stdout.write(f"\n{json.dumps(fields)}\n")
    sys.stdout.flush()


def head_is_up(address):
    """Ray's client server listens last, when the raylet has joined. Until then
    the head may still end itself: its parts give each other 15 or 30 seconds."""
    try:
        socket.create_connection((address, 10001), timeout=1).close()
    except OSError:
        return False
    return True


# A driver that comes to nothing says where it was, and makes room for another.
faulthandler.dump_traceback_later(90, exit=True)
address = os.environ["POD_IP"]
while not head_is_up(address):
    time.sleep(0.1)
# Ray's own messages go to stderr; only answers are to be found in stdout.
ray.init(address=f"{address}:{os.environ['RAY_PORT']}", _node_ip_address=address, log_to_driver=how == "aloud")
faulthandler.cancel_dump_traceback_later()
answer(ok=True)
for line in sys.stdin:
    try:
        names = dict(globals())
        exec(json.loads(line), names)
        answer(ok=True, value=repr(names.get("value")))
    except BaseException:
        answer(ok=False, error=traceback.format_exc())
