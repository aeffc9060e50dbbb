"""Files of strangers: how they are decoded is known before anything in them is decoded.

The metadata of a store name the codecs that turn its chunks into arrays. Some codecs run code that
the chunks bring along (``pickle``), and xarray reads coordinates as it opens a store. So the
metadata are read first. Only codecs and types of numbers and text are let through, in sizes that a
store of files can have.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .open_files import open_file

LIMIT_JSON = 2**26
"""Bytes of a text of JSON."""

LIMIT_DEPTH = 64
"""Lists and objects within each other in JSON."""

LIMIT_READ = 2**31
"""Bytes of a chunk, which compressors cannot exceed, and of an array that is read at opening."""

LIMIT_ARRAY = 2**44
"""Bytes of an array: 16 TiB."""

_COMPRESSORS = frozenset({
    "blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "adler32", "crc32", "crc32c",
    "fletcher32", "jenkins_lookup3", "bytes", "endian", "sharding_indexed", "shuffle",
    "transpose", "vlen-utf8",
})  # fmt: skip
"""Codecs that change how bytes are kept, not what they are, and text."""

_FILTERS = frozenset({
    "astype", "bitround", "cast_value", "delta", "fixedscaleoffset", "json2", "packbits",
    "pcodec", "quantize", "scale_offset", "zfpy",
})  # fmt: skip
"""Codecs of numbers, and of text as JSON."""


class UnreadableError(ValueError):
    """A file or store that is damaged or not to be read; the message names it."""


def damaged(what: str, error: Exception) -> UnreadableError:
    """The error to raise for a model that cannot be read, from what went wrong."""
    reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
    return UnreadableError(
        f"{what} is damaged: {reason or type(error).__name__}; restore it, or fit and save the "
        "model again"
    )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise UnreadableError, which names the file, for whatever its content makes fail.

    Libraries answer a damaged file with errors of any class: all say that it cannot be read.
    """
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:
        raise damaged(what, error) from error


@dataclass(frozen=True)
class Allowed:
    """What files of one purpose may hold."""

    codecs: frozenset[str]
    kinds: str
    """Codes of NumPy's kinds of types: i and u for integers, O for text of any length, ..."""
    chunks: int | None = None
    """Chunks of an array at most, each of which is a file."""
    ratio: int | None = None
    """Bytes that a netCDF file may claim for each that it has, beyond what is always read."""


MODEL = Allowed(_COMPRESSORS, "iufUO", chunks=2**20, ratio=2**12)
"""Models: numbers and text, as they are written here, in any compression."""

DATA = Allowed(_COMPRESSORS | _FILTERS, "iufUObcmMS")
"""Forecasts and observations: numbers, dates and text, however other software writes them."""


def read_json(text: str | bytes) -> Any:
    """Value of a text of JSON.

    Raises
    ------
    ValueError
        If it is none, or too long or nested too deeply.
    RecursionError
        If it is nested so deeply that Python cannot read it.
    """
    if len(text) > LIMIT_JSON:
        raise ValueError(f"a text of JSON has {len(text)} characters, more than {LIMIT_JSON}")
    value = json.loads(text)
    if _depth(value) > LIMIT_DEPTH:
        raise ValueError(f"JSON is nested more than {LIMIT_DEPTH} levels deep")
    return value


def _depth(value: Any) -> int:
    """Number of lists and objects within each other."""
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def to_json(value: Any, what: str) -> str:
    """Text of JSON that :func:`read_json` reads; ValueError for a value that it would refuse."""
    text = json.dumps(value, allow_nan=False)
    try:
        read_json(text)
    except ValueError as error:
        raise ValueError(
            f"{what} cannot be stored: {error}; leave attributes of the hindcast out, with "
            "hindcast.drop_attrs(), fit and save again"
        ) from error
    return text


def require_small(name: object, variable: xr.Variable) -> None:
    """Raise ValueError if a variable is too large to be read at opening."""
    if variable.nbytes > LIMIT_READ:
        raise ValueError(
            f"{name!r}, which is read at once, claims {variable.nbytes} bytes, more than "
            f"{LIMIT_READ}"
        )


def load_labels(dataset: xr.Dataset) -> None:
    """Read the coordinates of a Dataset that was opened; ValueError if one is too large."""
    for name, coordinate in dataset.coords.items():
        require_small(name, coordinate.variable)
        coordinate.load()


def open_known(path: Path, allowed: Allowed, **options: Any) -> xr.Dataset:
    """Open a file or store as xarray does, lazily, once its metadata are those that are allowed.

    Raises
    ------
    ValueError
        If arrays are of other types, too large, or decoded by codecs that are not allowed.
    """
    if not path.is_dir():
        file = open_file(path)
        _require_known_file(file.ds, path.stat().st_size, allowed)
        return xr.open_dataset(file, engine="store", **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The specified chunks separate the stored chunks")
        # Zarr warns of text of a fixed length each time that it describes an array.
        warnings.filterwarnings("ignore", ".*does not have a Zarr V3 specification")
        zarr_format = _require_known_store(path, allowed)
        # Metadata that were gathered are not read: they may be others than those of the arrays.
        return xr.open_dataset(
            path, engine="zarr", consolidated=False, zarr_format=zarr_format, **options
        )


def _require_known_store(path: Path, allowed: Allowed) -> Any:
    """Version of the format of a store; ValueError unless its arrays are allowed."""
    import zarr

    for folder in (path, *(Path(entry) for entry in path.iterdir() if entry.is_dir())):
        for name in ("zarr.json", ".zarray", ".zgroup", ".zattrs"):
            file = folder / name
            if file.exists() and not (file.is_file() and file.stat().st_size <= LIMIT_JSON):
                raise ValueError(f"{file.name} is no file of at most {LIMIT_JSON} bytes")
    group = zarr.open_group(path, mode="r", use_consolidated=False)
    for name, array in group.arrays():
        try:
            _require_known_array(array, allowed)
        except ValueError as error:
            raise ValueError(f"the array {name!r} {error}") from error
    return group.metadata.zarr_format


def _require_known_array(array: Any, allowed: Allowed) -> None:
    """Raise ValueError unless an array of a store holds numbers or text in allowed codecs."""
    described, dtype = array.metadata.to_dict(), array.dtype
    if described.get("storage_transformers"):
        raise ValueError("has storage transformers, which are not known")
    given = [*(described.get("codecs") or ()), described.get("compressor")]
    names = _require_known_codecs([*given, *(described.get("filters") or ())], allowed)
    kind = "O" if dtype.kind == "T" else dtype.kind
    if kind not in allowed.kinds or (kind == "O" and not names & {"vlen-utf8", "json2"}):
        raise ValueError(f"is of a type that is not read here, {dtype!s:.60}")
    _require_size(array.shape, dtype.itemsize)
    n_bytes = math.prod(array.chunks) * dtype.itemsize
    if n_bytes > LIMIT_READ:
        raise ValueError(
            f"has chunks of {n_bytes} bytes, more than {LIMIT_READ}; write it in smaller ones"
        )
    if allowed.chunks is not None and array.nchunks > allowed.chunks:
        raise ValueError(f"claims {array.nchunks} chunks, more than {allowed.chunks}")


def _require_known_codecs(codecs: Iterable[Any], allowed: Allowed) -> set[str]:
    """Names of codecs, also of those within others; ValueError for one that is not allowed."""
    names = set()
    for codec in codecs:
        if codec is None:
            continue
        if hasattr(codec, "get_config"):  # Zarr 3.0 describes those of format 2 by objects
            codec = codec.get_config()
        name = str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")
        if name not in allowed.codecs:
            raise ValueError(
                f"is decoded by {name!r}, which is not among the codecs that are known to run "
                "nothing that a file brings along; if you trust who made it, open it with "
                "other software and write it anew, compressed by one of blosc, gzip and zstd"
            )
        options = codec.get("configuration", codec)
        for key in ("astype", "dtype", "decode_dtype", "encode_dtype"):
            if key in options and np.dtype(str(options[key])).kind not in "biufcmM":
                raise ValueError(f"is decoded to {options[key]!r}, which are no numbers")
        inner = (*options.get("codecs", ()), *options.get("index_codecs", ()))
        names |= {name} | _require_known_codecs(inner, allowed)
    return names


def _require_size(shape: tuple[int, ...], n_bytes: int) -> int:
    """Bytes of an array; ValueError for one that no file can have."""
    claimed = math.prod(shape) * n_bytes
    # One-dimensional coordinates are read as soon as a file is opened.
    limit = LIMIT_READ if len(shape) <= 1 else LIMIT_ARRAY
    if claimed > limit:
        raise ValueError(f"claims {claimed} bytes, more than {limit}")
    return claimed


def _require_known_file(file: Any, there: int, allowed: Allowed) -> None:
    """Raise ValueError unless an open file of so many bytes holds plain types of possible sizes."""
    import netCDF4
    from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

    whole = 0
    # The library behind is not safe for threads: others may be reading through xarray.
    with NETCDF4_PYTHON_LOCK:
        for name, variable in file.variables.items():
            what, dtype = f"the variable {name!r}", variable.dtype
            own = isinstance(variable.datatype, (netCDF4.CompoundType, netCDF4.VLType))
            if own and dtype is not str:
                raise ValueError(f"{what} is of a type that the file defines itself")
            kind, n_bytes = ("O", 8) if dtype is str else (dtype.kind, dtype.itemsize)
            if kind not in allowed.kinds:
                raise ValueError(f"{what} is of a type that is not read here, of kind {kind!r}")
            try:
                whole += _require_size(variable.shape, n_bytes)
            except ValueError as error:
                raise ValueError(f"{what} {error}") from error
    if allowed.ratio is not None and whole > LIMIT_READ + allowed.ratio * there:
        raise ValueError(f"its variables claim {whole} bytes, but the file has {there}")
