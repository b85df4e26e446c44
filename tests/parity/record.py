"""Records cases: the hand-made ones, seeded random ones, and Ray's answers, as JSON lines.

    record.py --seed 1 --count 1000 > cases.jsonl

Every case is answered twice, in processes with different hash seeds. Where the answers differ,
they hang on the order of a Python hash table; such cases are left out and counted.
"""
import argparse
import json
import os
import subprocess
import sys

import by_hand
import snapshots

HERE = os.path.dirname(os.path.abspath(__file__))


def answers(lines, hash_seed):
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "ray_answer.py")],
        stdin=lines, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )


def cases(seed, count):
    yield from by_hand.cases()
    for number in range(seed, seed + count):
        yield number, snapshots.case(number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    work = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"rayfit-parity-{os.getpid()}.jsonl")
    with open(work, "w") as file:
        all_cases = list(cases(options.seed, options.count))
        for _, case in all_cases:
            file.write(json.dumps(case) + "\n")
    with open(work) as one, open(work) as other:
        first, second = answers(one, 1), answers(other, 2)
        left_out = 0
        for (seed, case), left, right in zip(all_cases, first.stdout, second.stdout, strict=True):
            if left != right:
                left_out += 1
                continue
            print(json.dumps({"seed": seed, **case, "ray": json.loads(left)}))
    os.unlink(work)
    if first.wait() or second.wait():
        sys.exit("an answering process failed")
    print(f"{len(all_cases)} cases, {left_out} left out for hanging on a hash order", file=sys.stderr)


if __name__ == "__main__":
    main()
