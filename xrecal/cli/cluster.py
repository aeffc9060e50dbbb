"""Computation on a Dask cluster, which may not answer, may lack workers, or may be lost."""

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
"""Seconds without a result, after which ``Cluster`` looks whether there are workers."""

CLOSE_SECONDS = 5
"""Seconds to wait while a connection closes."""


class UnreachableError(ConnectionError):
    """No scheduler answers, or it has no workers."""


@dataclass(frozen=True)
class Cluster:
    """A connection to a scheduler of ``dask.distributed``."""

    client: Any
    address: str
    timeout: float
    """Seconds to wait for an answer of the scheduler, and for a worker."""

    def require_worker(self) -> None:
        """Wait for a worker if there is none.

        Raises
        ------
        UnreachableError
            If no worker comes in time, or the scheduler does not answer.
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
        """Workers and their threads, from the scheduler."""
        seconds = max(end - monotonic(), 0.1)
        try:
            return self.client.sync(self.client.scheduler.ncores, callback_timeout=seconds)
        except OSError as error:
            raise _lost(self.address, error) from error

    def compute(self, collections: list[Any], *, quiet: bool) -> list[Any]:
        """Compute Dask collections together, with a progress bar on standard error."""
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
        """Yield futures as they end."""
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
        If no scheduler answers in time, no worker comes in time, or the connection is lost.
    ImportError
        If distributed is missing.
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
    """Contact a scheduler; raise OSError if there is none, ValueError for an impossible address.

    A thread makes the contact, and this function leaves it running after the time-out. The
    time-outs of distributed do not work if the other side is silent.
    """
    from distributed import rpc
    from distributed.comm.addressing import get_address_host_port

    answers: SimpleQueue[Any] = SimpleQueue()

    async def ask() -> Any:
        """Ask for the cores of the workers, which every scheduler knows."""
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
