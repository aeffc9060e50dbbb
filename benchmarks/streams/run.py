"""Replay all streams: the public pool, its experts, and what other constants would have given."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import table
from .experts import said, with_corrected
from .operational import SHARING, issued_by_pool
from .scoring import aggregated, comparison, judged, row_of
from .streams import SOURCES, Stream, streams

QUICK = 6  # every so many cases of the one stream of a quick run


def main(quick=False, keep=None):
    """Run all streams; with a folder, what experts said is kept there and taken from there."""
    begun = time.perf_counter()
    if quick:
        found = replayed([thinned(next(streams("toulouse")))])
    else:
        found = [
            one
            for source in SOURCES
            for own in together(source, list(streams(source)))
            for one in replayed(own, keep)
        ]
    rows = [row_of(one) for one in found]
    if not quick:
        table.store(rows)
    for lines in (table.by_stream, table.by_source):
        print("\n".join(lines(rows)))
    print(table.NOTES)
    sources = [one.stream.source for one in found]
    print("\n".join(table.of_choices(comparison(found), sources)))
    print(seconds_a_case(found[0]))
    print(f"{time.perf_counter() - begun:.0f} s")
    print("\n".join(table.verdicts(rows)))


def thinned(stream: Stream) -> Stream:
    """Some of the cases of a stream."""
    which = np.arange(0, stream.days.size, QUICK)
    issued = stream.issued.isel({stream.dim: which})
    return stream._replace(issued=issued, cases=stream.cases.select(which))


def together(source, found: list[Stream]):
    """Streams of a source in the calls that they are issued by."""
    return [found] if source in SHARING else [[one] for one in found]


def replayed(streams: Sequence[Stream], folder=None):
    """Scores of what experts said and the pool issued, which files keep if a folder is given."""
    every = [
        kept(lambda some: [said(one) for one in some], [one], folder, "")[0] for one in streams
    ]
    issued = kept(issued_by_pool, streams, folder, " pool")
    return [
        judged(one, with_corrected(one, own), quantiles)
        for one, own, quantiles in zip(streams, every, issued, strict=True)
    ]


def kept(replay, streams: Sequence[Stream], folder, suffix):
    """What a replay gave for some streams, from files where there are any."""
    if folder is None:
        return replay(streams)
    paths = [Path(folder) / f"{one.name}{suffix}.npy" for one in streams]
    if not all(path.exists() for path in paths):
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        for path, quantiles in zip(paths, replay(streams), strict=True):
            np.save(path, quantiles.astype(np.float32))
    return [np.load(path) for path in paths]


def seconds_a_case(one):
    """Line of the time that learning and issuing a case take, experts aside."""
    start = time.process_time()
    aggregated(one.stream, one.said)
    n = one.stream.days.size - one.stream.warm_up
    return f"{1e3 * (time.process_time() - start) / n:.2f} ms to learn and issue a case"


def parsed():
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one stream, on a part of its cases")
    parser.add_argument("--keep", metavar="FOLDER", help="where what experts said is kept")
    return parser.parse_args()
