"""Command line that stores outputs, prints their sums, and compares them; see the package."""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from .groups import groups, stored_groups
from .sums import STATE, STORED, digest, made_by, row, written


def sums(chosen: list[str], *, issued: bool) -> Iterator[tuple[str, str]]:
    """Names of outputs, and sums of all their bytes; without the layout of models if asked."""
    for group in chosen:
        for name, output in made_by(group):
            if not (issued and STATE.match(name)):
                yield f"{group}/{name}", digest(output)


def print_sums(chosen: list[str], *, issued: bool) -> None:
    """Print a line for each output, and one for all of them."""
    whole = hashlib.sha256()
    for name, total in sums(chosen, issued=issued):
        line = f"{total}  {name}"
        whole.update(line.encode())
        print(line, flush=True)
    print(f"{whole.hexdigest()}  all")


def differ(earlier: Path, chosen: list[str], *, issued: bool) -> bool:
    """Print sums that differ from earlier ones, which begin with ``-``; whether there are any."""
    before: dict[str, str] = {}
    for line in earlier.read_text().splitlines():
        total, name = line.split("  ", 1)
        group, _, output = name.partition("/")
        if group in chosen and not (issued and STATE.match(output)):
            before[name] = total
    differing = False
    for name, total in sums(chosen, issued=issued):
        was = before.pop(name, None)
        if was != total:
            differing = True
            print(*([] if was is None else [f"- {was}  {name}\n"]), f"+ {total}  {name}", sep="")
    for name, total in before.items():
        differing = True
        print(f"- {total}  {name}")
    return differing


def store() -> None:
    """Write the table of all groups."""
    rows = {group: row(group) for group in stored_groups()}
    STORED.write_text(written(rows))
    print(f"{len(rows)} groups in {STORED}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.outputs")
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--hash", action="store_true")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--issued", action="store_true")
    given = parser.parse_args()
    chosen = [name for name in groups() if any(fnmatch(name, g) for g in given.groups or "*")]
    if not chosen:
        parser.error(f"no group is {' or '.join(given.groups)}; there are {', '.join(groups())}")
    if given.compare is not None:
        sys.exit(differ(given.compare, chosen, issued=given.issued))
    elif given.hash:
        print_sums(chosen, issued=given.issued)
    else:
        store()
