#!/usr/bin/env python3
"""demo-svg.py < docs/rollout.md > docs/demo.svg: the walk through that page as a moving picture for the README. It shows
commands and what they have printed there, so it is as true as the page, which a test walks through; equal pages give equal bytes."""

import re
import sys
import textwrap
from html import escape

# The section of the page, and how the command in it begins.
SCENES = [
    ("Look", "rayfit rollout;"),
    ("Look", "rayfit rollout --policy"),
    ("Warn", "kubectl apply --dry-run"),
    ("Warn", "rayfit check"),
    ("Enforce", "kubectl apply --dry-run"),
    ("Enforce", "kubectl label"),
    ("Exempt", "rayfit rollout"),
]
COLUMNS, SECONDS = 96, 6
CELL, LINE, EDGE, BAR = 8.4, 20, 18, 34
COLOURS = [(r"\$ ", "command"), ("# ", "note"), (r"Warning:|\S+ RF\d+ warning", "warned"), (r"The Ray.* is invalid|RayCluster .*: RF", "denied")]


def printed(page):
    """The commands of each section, with the lines that follow them."""
    section, inside, found = "", False, []
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((section, line[2:], []))
        elif inside:
            found[-1][2].append(line)
        elif line.startswith("## "):
            section = line[3:]
    return found


def folded(text):
    """A line in lines of the terminal's width."""
    return textwrap.wrap(text, COLUMNS, subsequent_indent="  ", replace_whitespace=False) or [""]


def lines(found, section, start):
    for in_section, command, output in found:
        if in_section == section and command.startswith(start):
            shown = [f"# {section}", f"$ {command}", *output]
            return [(line, kind(text)) for text in shown for line in folded(text)]
    sys.exit(f"demo-svg.py: section {section} of the page has no command {start}")


def kind(text):
    return next((name for pattern, name in COLOURS if re.match(pattern, text)), "output")


def drawn(scene, number, total):
    """A scene: its command is there at once, what it prints a moment later."""
    rows = {"at once": [], "later": []}
    for row, (text, name) in enumerate(scene):
        if text.strip():
            y = BAR + EDGE + row * LINE
            width = f'{len(text) * CELL:.1f}'
            rows["at once" if name in ("command", "note") else "later"].append(
                f'<text class="{name}" x="{EDGE}" y="{y}" textLength="{width}">{escape(text)}</text>')
    begin = -(total - number) * SECONDS
    return "".join(
        f'<g class="{"scene" if part == "at once" else "scene later"}" style="animation-delay:{begin}s">\n' + "\n".join(texts) + "\n</g>\n"
        for part, texts in rows.items())


def main():
    found = printed(sys.stdin.read())
    scenes = [lines(found, *scene) for scene in SCENES]
    width = round(COLUMNS * CELL + 2 * EDGE)
    height = BAR + 2 * EDGE + max(map(len, scenes)) * LINE - 8
    total = len(scenes)
    share = 100 / total
    dots = "".join(f'<circle cx="{22 + 18 * number}" cy="17" r="5.5"/>' for number in range(3))
    print(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" aria-labelledby="title">
<title id="title">A terminal in which the rules of Rayfit are rolled out: first a report, then warnings, then denials, and an exemption</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;white-space:pre}}
.output{{fill:#d0d7de}}.command{{fill:#fff;font-weight:600}}.note{{fill:#8b949e}}.warned{{fill:#e3b341}}.denied{{fill:#ff8a80}}
circle{{fill:#484f58}}
.scene{{animation:scene {total * SECONDS}s step-end infinite;opacity:0}}
.later{{animation-name:later}}
@keyframes scene{{0%{{opacity:1}}{share:.3f}%{{opacity:0}}}}
@keyframes later{{0%{{opacity:0}}{share / SECONDS:.3f}%{{opacity:1}}{share:.3f}%{{opacity:0}}}}
.scene:nth-of-type(-n+2){{opacity:1}}
@media (prefers-reduced-motion){{.scene{{animation:none}}}}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{dots}""")
    for number, scene in enumerate(scenes):
        print(drawn(scene, number, total), end="")
    print("</svg>")


if __name__ == "__main__":
    main()
