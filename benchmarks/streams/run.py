"""Replay all streams: the public pool, its experts, and what other constants would have given."""

import argparse
import time
from pathlib import Path

import numpy as np

from . import table
from .experts import said, with_corrected
from .operational import issued_by_pool
from .scoring import aggregated, comparison, judged, row_of
from .streams import SOURCES, Stream, streams

QUICK = 6  # every so many cases of the one stream of a quick run


def main(quick=False, keep=None):
    """Run all streams; with a folder, what experts said is kept there and taken from there."""
    begun = time.perf_counter()
    if quick:
        found = [replayed(thinned(next(streams("toulouse"))))]
    else:
        found = [replayed(one, keep) for source in SOURCES for one in streams(source)]
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


def replayed(stream: Stream, folder=None):
    """Scores of what experts said and the pool issued, which files keep if a folder is given."""
    every = with_corrected(stream, kept(said, stream, folder, ""))
    return judged(stream, every, kept(issued_by_pool, stream, folder, " pool"))


def kept(replay, stream: Stream, folder, suffix):
    """What a replay gave, from a file where there is one."""
    if folder is None:
        return replay(stream)
    path = Path(folder) / f"{stream.name}{suffix}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, replay(stream).astype(np.float32))
    return np.load(path)


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
