"""Check the built site: ``python docs/_extensions/links.py FOLDER``.

Every link, picture and anchor inside of the site must exist, and no page may load a script, a style, a font or a
picture from another host. Links of readers to other sites are not followed.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, and where it says so.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class _Page(HTMLParser):
    """Collects targets (``id`` and ``name``), links, and what is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value for key, value in attrs if value}
        self.targets |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


@cache
def read(path: Path) -> _Page:
    """A parsed page."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(folder: Path) -> list[str]:
    """One line for everything that is missing, or that comes from another host."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        page = read(path)
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or address.startswith("//"):
                if address in page.loaded:
                    found.append(f"{path.relative_to(folder)}: loads {address}")
                continue
            if parts.scheme:  # mailto, data
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(folder)}: no file {address}")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).targets:
                found.append(f"{path.relative_to(folder)}: no anchor {address}")
    return found


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    pages = len(list(folder.rglob("*.html")))
    if not pages:
        print(f"links: no pages in {folder}.")
        return 1
    found = broken(folder)
    print(*found, f"{pages} pages, {len(found)} broken links", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
