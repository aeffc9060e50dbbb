"""Replay all streams: the public pool, its experts, and what other constants would have given."""

import argparse
import time
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import record

from . import table
from .experts import said, with_corrected
from .operational import SHARING, issued_by_pool
from .scoring import aggregated, comparison, judged, row_of
from .streams import SOURCES, Stream, streams

POOL = " pool"  # ends the names of files of what the pool issued
QUICK = 6  # every so many cases of the one stream of a quick run


def main(quick=False, keep=None):
    """Run all streams; with a folder, what experts said is kept there and taken from there."""
    begun = time.perf_counter()
    if quick:
        found = replayed([thinned(next(streams("toulouse")))])
    else:
        with TemporaryDirectory() as own:
            folder = keep or own
            with record.one_process_a_core() as workers:
                for _ in workers.map(replay, *zip(*pieces(), strict=True), repeat(folder)):
                    pass
            found = [
                one
                for source in SOURCES
                for own in together(source, list(streams(source)))
                for one in replayed(own, folder)
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


def pieces():
    """Source and number of what each process replays: a stream's experts, or streams in one call.

    Negative numbers count the calls. Calls first, and those of many streams before: they are long.
    """
    calls = {
        source: [len(own) for own in together(source, [*streams(source)])] for source in SOURCES
    }
    in_one = [(-n, source, ~i) for source, sizes in calls.items() for i, n in enumerate(sizes)]
    alone = [(source, i) for source, sizes in calls.items() for i in range(sum(sizes))]
    return [(source, i) for _, source, i in sorted(in_one)] + alone


def replay(source, number, folder):
    """Keep what a process replays in files."""
    found = [*streams(source)]
    if number < 0:
        kept(issued_by_pool, together(source, found)[~number], folder, POOL)
    else:
        kept(all_said, [found[number]], folder, "")


def all_said(streams: Sequence[Stream]):
    """What experts said of each stream."""
    return [said(one) for one in streams]


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
    every = [kept(all_said, [one], folder, "")[0] for one in streams]
    issued = kept(issued_by_pool, streams, folder, POOL)
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
