#!/usr/bin/env python3
"""links.py FOLDER: every link between the HTML pages of a site leads to a page, and to a place in it that exists."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    broken, count = [], 0
    for path, page in pages.items():
        # The page of an error is shown in place of any other one, and the page to print has the places of all.
        if path.name in ("404.html", "print.html", "toc.html"):
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.name}: {link}: there is no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                broken.append(f"{path.name}: {link}: there is no such place")
    print("\n".join(broken) or f"{count} links on {len(pages)} pages, and all lead somewhere")
    return 1 if broken or count < 100 else 0


sys.exit(main())
