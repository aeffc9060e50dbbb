"""Computation on a Dask cluster, with errors if the cluster does not answer or has no worker."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, sleep
from typing import Any

import click

LOOK_SECONDS = 1
"""Number of seconds without a result after which ``Cluster`` checks that there are workers."""

CLOSE_SECONDS = 5
"""Longest wait for a connection to close, in seconds."""


class UnreachableError(ConnectionError):
    """Error: a scheduler does not answer or has no workers, or the connection to it is lost."""


@dataclass(frozen=True)
class Cluster:
    """A connection to a scheduler of ``dask.distributed``."""

    client: Any
    address: str
    timeout: float
    """Longest wait for an answer of the scheduler, and for a worker, in seconds."""

    def require_worker(self) -> None:
        """Wait for a worker if there is none.

        Raises
        ------
        UnreachableError
            If no worker connects in time, or the scheduler does not answer.
        """
        end = monotonic() + self.timeout
        while not self._workers(end):
            if monotonic() > end:
                raise UnreachableError(
                    f"the scheduler at {self.address!r} has had no worker for {self.timeout:g} s; "
                    f"start one with dask worker {self.address}, or give a longer --timeout"
                )
            sleep(0.1)

    def _workers(self, end: float) -> Any:
        """Ask the scheduler for its workers and their numbers of threads."""
        seconds = max(end - monotonic(), 0.1)
        try:
            return self.client.sync(self.client.scheduler.ncores, callback_timeout=seconds)
        except OSError as error:
            raise _lost(self.address, error) from error

    def compute(self, collections: list[Any], *, quiet: bool) -> list[Any]:
        """Compute Dask collections together, with a progress bar on standard error unless quiet."""
        from dask.base import unpack_collections
        from distributed import CancelledError

        flat, repack = unpack_collections(*collections)
        futures = self.client.compute(flat)
        ended = self._ended(futures)
        bar: Any = nullcontext(ended)
        if not quiet:
            bar = click.progressbar(ended, length=len(futures), file=sys.stderr)
        try:
            with bar as shown:
                for future in shown:
                    if future.status != "finished":
                        break
            return list(repack(self.client.gather(futures)))
        except CancelledError as error:
            raise _lost(self.address, error) from error

    def _ended(self, futures: list[Any]) -> Iterator[Any]:
        """Yield each future (result of a task) when its task ends."""
        ended: SimpleQueue[Any] = SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        n_ended = 0
        while n_ended < len(futures):
            try:
                yield ended.get(timeout=LOOK_SECONDS)
                n_ended += 1
            except Empty:
                self.require_worker()


@contextmanager
def connected(address: str, timeout: float) -> Iterator[Cluster]:
    """Connect to a cluster, and wait until it has a worker.

    Raises
    ------
    UnreachableError
        If no scheduler answers in time, no worker connects in time, or the connection is lost.
    ImportError
        If the library distributed is not installed.
    """
    if find_spec("distributed") is None:
        raise ImportError("--scheduler needs distributed; use pip install distributed")
    from distributed import CancelledError, Client
    from distributed.comm.core import CommClosedError

    try:
        _knock(address, timeout)
        client = Client(address, timeout=f"{timeout}s")
    except (OSError, ValueError, TypeError) as error:
        raise UnreachableError(
            f"no scheduler can be reached at {address!r} ({error}); give the address that "
            "dask scheduler prints, such as tcp://127.0.0.1:8786, or a longer --timeout"
        ) from error
    try:
        cluster = Cluster(client, address, timeout)
        cluster.require_worker()
        yield cluster
    except (CancelledError, CommClosedError) as error:
        raise _lost(address, error) from error
    finally:
        client.close(timeout=CLOSE_SECONDS)


def _knock(address: str, timeout: float) -> None:
    """Contact a scheduler; raise OSError if there is none, ValueError if the address is invalid.

    A thread waits for the answer. After the time-out this function raises TimeoutError and leaves
    the thread running, because the time-outs of distributed do not work with a silent scheduler.
    """
    from distributed import rpc
    from distributed.comm.addressing import get_address_host_port

    answers: SimpleQueue[Any] = SimpleQueue()

    async def ask() -> Any:
        """Ask for the cores of the workers: every scheduler can answer this question."""
        async with rpc(address) as scheduler:
            return await scheduler.ncores()

    def listen() -> None:
        try:
            answers.put(asyncio.run(ask()))
        except Exception as error:
            answers.put(error)

    end = monotonic() + timeout
    with socket.create_connection(get_address_host_port(address), timeout):
        Thread(target=listen, daemon=True).start()
    try:
        answer = answers.get(timeout=max(end - monotonic(), 0))
    except Empty:
        raise TimeoutError(f"no answer for {timeout:g} s") from None
    if isinstance(answer, Exception):
        raise answer


def _lost(address: str, error: BaseException) -> UnreachableError:
    return UnreachableError(f"the connection to the scheduler at {address!r} was lost: {error}")
