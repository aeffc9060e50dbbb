"""Dead links between built pages, missing images, and whatever a page would fetch from elsewhere.

python docs/check_links.py docs/_build/html
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {(tag, "src") for tag in ("iframe", "img", "script", "source")} | {("link", "href")}
IN_STYLES = re.compile(r"url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*;")


class Page(HTMLParser):
    """What a page refers to, what it would fetch, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.anchors = path, {"", "top"}
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and (tag, name) in FETCHED:
                self.fetched.add(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.add(value)


def faults(root: Path) -> list[str]:
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html")}
    found = []
    for page in pages.values():
        here = page.path.relative_to(root)
        elsewhere = {url for url in page.fetched if urlsplit(url).netloc}
        found += [f"{here} fetches {url}" for url in elsewhere]
        for url in page.links | page.fetched - elsewhere:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            name = unquote(parts.path)
            target = (page.path.parent / name if name else page.path).resolve()
            if not target.is_file():
                found.append(f"{here} refers to {url}, which is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{here} refers to {url}, which has no such anchor")
    for style in root.rglob("*.css"):
        urls = IN_STYLES.findall(style.read_text())
        found += [f"{style.relative_to(root)} fetches {url}" for url in urls]
    return sorted(found) if pages else [f"no pages in {root}; build them first: make docs"]


if __name__ == "__main__":
    found = faults(Path(sys.argv[1]))
    print("\n".join(found) or "all links lead somewhere, nothing is fetched from elsewhere")
    sys.exit(bool(found))
