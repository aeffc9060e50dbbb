"""Sort places in an order that looks random but depends on their labels alone.

Samples of places take the first places in this order. The order follows a hash of the labels: a
number that depends on a text alone, and that differs much even between similar texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.typing import IntArray

from .dims import text_of
from .forms import Form
from .metadata import LATITUDE, LONGITUDE

STEP = 1e-4
"""Numbers are rounded to this step, so that single and double precision give equal labels."""


def order_of_places(form: Form, dims: Sequence[Hashable]) -> IntArray:
    """Return the positions of all places along some dimensions, sorted by a hash of their labels.

    The order does not depend on chunks, on the order of places and dimensions, on the precision of
    labels, or on the names of dimensions. Places with equal labels are sorted by position. Places
    without labels are sorted by a hash of their position.

    Parameters
    ----------
    form : Form
        Forecasts, with the labels of their places.
    dims : sequence of hashable
        Dimensions of places. Positions count all places, fastest along the last dimension.

    Returns
    -------
    array of int64, shape (P,)
        Positions; the place with the smallest hash comes first.
    """
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    total = np.zeros((), np.uint64)
    for d in dims:
        total = np.add.outer(total, _hashes(_labels(form, d), sizes[d]))
    return np.argsort(total.ravel(), kind="stable")


def _labels(form: Form, dim: Hashable) -> list[xr.DataArray]:
    """Return the labels along a dimension or, without labels, latitudes and longitudes along it."""
    for part in form.parts.values():
        if dim in part.indexes:
            return [part[dim]]
    along = {n: c for p in form.parts.values() for n, c in p.coords.items() if c.dims == (dim,)}
    return [c for mark in (LATITUDE, LONGITUDE) for n, c in along.items() if mark.fits(n, c)]


def _hashes(labels: Sequence[xr.DataArray], n: int) -> npt.NDArray[np.uint64]:
    """Return hashes of the labels, or else of the positions, of n places along a dimension."""
    texts = [_texts(label) for label in labels] or [[b"%d" % i for i in range(n)]]
    return np.array([_number(b" ".join(of_place)) for of_place in zip(*texts, strict=True)])


def _texts(label: xr.DataArray) -> list[bytes]:
    """Return labels (n,) as bytes; labels other than numbers, lengths and dates become text.

    Numbers are counted in multiples of ``STEP``, and lengths of time and dates in seconds.
    A longitude and a latitude with the same number get different bytes.
    """
    is_longitude = LONGITUDE.fits(label.name, label)
    kind = b"x" if is_longitude else b"y" if LATITUDE.fits(label.name, label) else b"-"
    if label.dtype.kind in "iufb":
        whole = np.round(label.to_numpy().astype(np.float64) / STEP)
        if is_longitude:
            whole = whole % np.round(360.0 / STEP)
        return [b"%s%.0f" % (kind, number) for number in whole + 0.0]
    if label.dtype.kind in "mM":
        seconds = label.to_numpy().astype(f"{label.dtype.kind}8[s]").astype(np.int64)
        return [b"%d" % number for number in seconds]
    return [text_of(one).encode() for one in label.to_index()]


def _number(text: bytes) -> np.uint64:
    """Return the hash of a text as a 64-bit number."""
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))
