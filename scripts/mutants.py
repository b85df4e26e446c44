#!/usr/bin/env python3
"""Puts faults into a copy of the code on purpose, and says which of them simulations do not find.

    scripts/mutants.py [TITLE..]

The faults are those of tests/fixtures/simulate/mutants.txt, or those whose titles contain one of the
arguments. All of them are built into one program, in which a variable of the environment turns one
on. Each is tried with the scripts of tests/fixtures/simulate/faults, so many seeds, the
worlds of several tenants, and the scripts of tests/fixtures/simulate/agrees, whose events are known.
Ends with 1 if one is not found, or if a line that is to be changed is not in its file exactly once.

PROFILE  of cargo (default dev)
SEEDS    how many (default 300)
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "mutants"
# Tried one after the other until one fails: the quickest come first, and no test is in two of them.
TESTS = [
    "simulate_faults::what_once_broke",
    "simulate_agrees::",
    "simulate_faults::nothing_breaks",
    "simulate_shared::",
    "simulate_faults::the_same_is_done",
    "simulate_faults::plans_are_written",
]
SWITCH = """
/// Whether a fault that was put in on purpose is on.
pub fn mutant(number: usize) -> bool {
    static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let read = || std::env::var("RAYFIT_MUTANT").ok()?.parse().ok();
    *ON.get_or_init(|| read().unwrap_or(0)) == number
}
"""


def mutants():
    """Title, file, what is replaced, and by what."""
    text = (ROOT / "tests/fixtures/simulate/mutants.txt").read_text()
    for block in text.split("\n\n")[1:]:
        title, path, before, after = block.strip().splitlines()
        yield title, path, before.removeprefix("- "), after.removeprefix("+ ")


def copy():
    """The files that git knows, as they are now. Files that did not change keep their times."""
    names = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True
    ).split("\n")
    kept = {name for name in names if name and (ROOT / name).is_file()}
    for name in kept:
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, COPY / name)
    for folder in ("src", "crates"):
        for path in (COPY / folder).rglob("*.rs"):
            if str(path.relative_to(COPY)) not in kept:
                path.unlink()


def put_in(listed):
    (COPY / "crates/core/src/lib.rs").open("a").write(SWITCH)
    for number, (title, path, before, after) in enumerate(listed, 1):
        text = (COPY / path).read_text()
        if text.count(before) != 1:
            sys.exit(f"mutants.py: {path} has {text.count(before)} times: {before}\n  ({title})")
        after = after.replace("MUTANT", f"crate::mutant({number})")
        (COPY / path).write_text(text.replace(before, after))


def program(profile):
    """Builds the tests, and returns the path of their program."""
    command = ["cargo", "test", "--locked", "--profile", profile, "--test", "core", "--no-run"]
    # In a folder of its own: cargo would take the copy's results for those of the code itself. And by rustc, not by
    # a linter: a fault may be what that warns of.
    env = {**os.environ, "CARGO_TARGET_DIR": str(COPY / "target"), "RUSTC_WORKSPACE_WRAPPER": ""}
    done = subprocess.run(command, cwd=COPY, env=env, stderr=subprocess.PIPE, text=True)
    found = re.search(r"Executable.*\((.*)\)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return found.group(1)


def run(tests, number, seeds):
    env = {
        **os.environ,
        "RAYFIT_MUTANT": str(number),
        "RAYFIT_SEEDS": seeds,
        "RAYFIT_UNSHRUNK": "1",
        "RAYFIT_FAILURES": "1",
        "RUST_BACKTRACE": "0",
    }
    for part in TESTS:
        done = subprocess.run([tests, part], cwd=COPY, env=env, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            break
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("titles", nargs="*", metavar="TITLE", help="a part of a fault's title")
    wanted = parser.parse_args().titles
    listed = list(mutants())
    for word in wanted:
        if not any(word in title for title, *_ in listed):
            parser.error(f"no fault's title contains {word!r}")
    copy()
    put_in(listed)
    tests = program(os.environ.get("PROFILE", "dev"))
    seeds = os.environ.get("SEEDS", "300")
    if run(tests, 0, seeds).returncode != 0:
        sys.exit("mutants.py: the tests fail without any fault that was put in")
    missed = 0
    for number, (title, *_) in enumerate(listed, 1):
        if wanted and not any(word in title for word in wanted):
            continue
        done = run(tests, number, seeds)
        found = re.search(r"^.*(seed \d+|world \d+, cluster \d+): .*$", done.stdout, re.M)
        by = found.group(0)[-100:] if found else "another test" if done.returncode else None
        print(f"{'found' if by else 'MISSED':<7} {title}" + (f"\n        {by}" if by else ""), flush=True)
        missed += by is None
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
