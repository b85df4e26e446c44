#!/usr/bin/env python3
"""wrap.py [--check]: wraps paragraphs of the pages that have a line of more than 120 characters, or says which these are.

Tables, code, pictures, and what programs write stay as they are, and translations into a language without spaces."""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 120
WRITTEN = ("docs/rules.md", "docs/outcome.md")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) +")
# A line that begins so is no continuation of a paragraph.
OTHER = re.compile(r"\s*(?:$|\||#|!\[|<|```)")


def wrapped(lines: list[str]) -> list[str]:
    """The lines of one paragraph, each as long as it may be. No line is broken in code, or begins like an item."""
    item = ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]
    indent = " " * len(first)
    text = " ".join(line.strip() for line in [lines[0][len(first) :], *lines[1:]])
    out = [first]
    for word in re.findall(r"(?:`[^`]*`|\S)+", text):
        if len(out[-1]) + len(word) + 1 > LONGEST and out[-1].strip() and not re.fullmatch(r"[-*+#>]|\d+\.", word):
            out.append(indent)
        out[-1] += word if out[-1] in (first, indent) else f" {word}"
    return out


def page(lines: list[str]) -> list[str]:
    """The lines of a page, wrapped."""
    out: list[str] = []
    at, end = 0, None
    while at < len(lines):
        line = lines[at]
        if end:
            end = None if re.match(end, line) else end
        elif fence := re.match(r" *```", line):
            end = fence[0] + "$"
        elif line.startswith("<!-- ") and re.search(r"\bbegin\b", line):
            end = r"<!-- .*\bend\b"
        elif (begin := re.match(r"<!-- ([\w-]+)", line)) and f"<!-- /{begin[1]} -->" in lines[at:]:
            end = f"<!-- /{begin[1]} -->"
        is_code = line.startswith("    ") and not ITEM.match(line)
        is_prose = not (end or is_code or OTHER.match(line))
        stop = at + 1
        while is_prose and stop < len(lines) and not (OTHER.match(lines[stop]) or ITEM.match(lines[stop])):
            stop += 1
        part = lines[at:stop]
        out += wrapped(part) if is_prose and any(len(one) > LONGEST for one in part) else part
        at = stop
    return out


def main() -> int:
    """Wraps all pages of the repository."""
    listed = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True)
    code = 0
    for path in map(Path, listed.stdout.split()):
        if str(path) in WRITTEN or path.name.endswith(".zh-CN.md"):
            continue
        text = path.read_text()
        new = "\n".join(page(text.split("\n")))
        if new == text:
            continue
        if "--check" in sys.argv:
            print(f"{path} has lines of more than {LONGEST} characters: run make fmt")
            code = 1
        else:
            path.write_text(new)
    return code


sys.exit(main())
