"""Safe opening of files from strangers: codecs are checked before anything is decoded.

The metadata of a store contain the names of the codecs that turn its chunks into arrays. Some
codecs run code from the chunks (``pickle``). So opening a store, which reads its coordinates, could
run a program. This module first reads the metadata as plain JSON. It accepts only known codecs,
only numbers and text, and only arrays of plausible sizes.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .open_files import open_file

LIMIT_JSON = 2**26
"""Largest size of a text in JSON, in bytes."""

LIMIT_DEPTH = 64
"""Largest depth of nested lists and objects in JSON."""

LIMIT_READ = 2**31
"""Largest size, in bytes, of a chunk, and of an array that is read when a store is opened."""

LIMIT_ARRAY = 2**44
"""Largest size of an array, in bytes: 16 TiB."""

_COMPRESSORS = frozenset({
    "blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "adler32", "crc32", "crc32c",
    "fletcher32", "jenkins_lookup3", "bytes", "endian", "sharding_indexed", "shuffle",
    "transpose", "vlen-utf8",
})  # fmt: skip
"""Allowed codecs that compress or rearrange bytes, or encode text."""

_FILTERS = frozenset({
    "astype", "bitround", "cast_value", "delta", "fixedscaleoffset", "json2", "packbits",
    "pcodec", "quantize", "scale_offset", "zfpy",
})  # fmt: skip
"""Allowed codecs that convert numbers, or encode text as JSON."""


class UnreadableError(ValueError):
    """Error for a damaged or forbidden file or store; the message names the file or store."""


def damaged(what: str, error: Exception) -> UnreadableError:
    """Return the error to raise for a model that cannot be read, from the original error."""
    reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
    return UnreadableError(
        f"{what} is damaged: {reason or type(error).__name__}; restore it, or fit and save the "
        "model again"
    )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Context in which any error becomes an UnreadableError, which names the file.

    This is necessary because libraries raise errors of any class for damaged files.
    """
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:
        raise damaged(what, error) from error


@dataclass(frozen=True)
class Allowed:
    """Contents that files for one purpose may have."""

    codecs: frozenset[str]
    kinds: str
    """Allowed kinds of types, as letters of NumPy: i and u for integers, O for text, ..."""
    chunks: int | None = None
    """Largest number of chunks of an array; each chunk is a file."""
    ratio: int | None = None
    """Largest number of bytes that variables may claim for each byte of their netCDF file; they may
    claim ``LIMIT_READ`` bytes in addition."""


MODEL = Allowed(_COMPRESSORS, "iufUO", chunks=2**20, ratio=2**12)
"""Contents of models: numbers and text as xrecal writes them, in any compression."""

DATA = Allowed(_COMPRESSORS | _FILTERS, "iufUObcmMS")
"""Contents of forecasts and observations: numbers, dates and text from any software."""


def read_json(text: str | bytes) -> Any:
    """Read a JSON text; raise ValueError if it is not valid, too long or nested too deeply."""
    if len(text) > LIMIT_JSON:
        raise ValueError(f"a text of JSON has {len(text)} characters, more than {LIMIT_JSON}")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level: list[Any] = [[value]]
    for _ in range(LIMIT_DEPTH + 1):
        inner = chain.from_iterable(v.values() if isinstance(v, dict) else v for v in level)
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = f"JSON is nested more than {LIMIT_DEPTH} levels deep"


def to_json(value: Any, what: str) -> str:
    """Convert a value to a JSON text; raise ValueError if :func:`read_json` would refuse it."""
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
            f"{name!r}, which is read at opening, claims {variable.nbytes} bytes, more than "
            f"{LIMIT_READ}"
        )


def require_known(path: Path, allowed: Allowed) -> None:
    """Raise ValueError unless a file or store can be read without running code from it.

    Parameters
    ----------
    path : Path
        Path of a Zarr store (version 2 or 3) if it is a directory, or else of a netCDF file.
    allowed : Allowed
        Allowed codecs, types and numbers of chunks.
    """
    if not path.is_dir():
        _require_known_file(path, allowed)
        return
    for file in _metadata_files(path):
        for name, content in _arrays(file, file.parent.name if file.parent != path else ""):
            try:
                _require_known_array(content, allowed)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"the metadata of {name!r} are incomplete: {error!r}") from error
            except ValueError as error:
                raise ValueError(f"the array {name!r} {error}") from error


def load_labels(dataset: xr.Dataset) -> None:
    """Read the coordinates of an opened Dataset; raise ValueError if one is too large."""
    for name, coordinate in dataset.coords.items():
        require_small(name, coordinate.variable)
        coordinate.load()


def open_known(path: Path, allowed: Allowed, **options: Any) -> xr.Dataset:
    """Open a file or store lazily with xarray, after :func:`require_known`.

    The check and all readers share one open netCDF file.
    """
    store = None if path.is_dir() else open_file(path)
    require_known(path, allowed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The specified chunks separate the stored chunks")
        if store is None:
            return xr.open_dataset(path, engine="zarr", consolidated=False, **options)
        return xr.open_dataset(store, engine="store", **options)


def _metadata_files(store: Path) -> Iterator[Path]:
    """Yield the metadata files of a store and of the arrays in it."""
    for folder in (store, *(Path(entry) for entry in store.iterdir() if entry.is_dir())):
        for name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"):
            file = folder / name
            if file.exists():
                if not file.is_file() or file.stat().st_size > LIMIT_JSON:
                    raise ValueError(f"{file.name} is not a file of at most {LIMIT_JSON} bytes")
                yield file


def _arrays(file: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Yield name and metadata of each array in a metadata file."""
    try:
        content = read_json(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{name}/{file.name} cannot be read: {error}".lstrip("/")) from error
    if not isinstance(content, dict):
        raise ValueError(f"{name}/{file.name} holds no object".lstrip("/"))
    if file.name == ".zarray":
        yield name, {**content, "zarr_format": 2}
    elif file.name == ".zmetadata":
        gathered = _object(content, "metadata").items()
        for key, array in gathered:
            if key.endswith(".zarray"):
                yield key, {**array, "zarr_format": 2}
    elif file.name == "zarr.json":
        yield from _nodes(content, name)


def _nodes(content: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield an array, or the arrays of a group; an entry other than a group counts as an array."""
    if not isinstance(content, dict) or content.get("node_type") != "group":
        yield name, content
    elif content.get("consolidated_metadata") is not None:
        gathered = _object(_object(content, "consolidated_metadata"), "metadata")
        for inner, node in gathered.items():
            yield from _nodes(node, inner)


def _object(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} of the store is not an object")
    return value


def _require_known_array(content: Mapping[str, Any], allowed: Allowed) -> None:
    """Raise an error unless the metadata of a stored array describe numbers or text."""
    filters = content.get("filters") or []
    # Codecs of another version of Zarr would be unused, but are refused, too.
    codecs = [c for c in (*(content.get("codecs") or []), content.get("compressor"), *filters) if c]
    if content["zarr_format"] == 3:
        if content.get("storage_transformers"):
            raise ValueError("has storage transformers, which are not known")
        grid = content["chunk_grid"]
        if grid["name"] != "regular":
            raise ValueError(f"has the grid of chunks {grid['name']!r}, which is not known")
        chunks, (kind, n_bytes) = grid["configuration"]["chunk_shape"], _type_of_v3(content)
    else:
        chunks, (kind, n_bytes) = content["chunks"], _type_of_v2(content)
    if kind not in allowed.kinds:
        raise ValueError(f"has a type that xrecal does not read, of kind {kind!r}")
    _require_known_codecs(codecs, allowed, n_bytes)
    _require_size(content["shape"], chunks, n_bytes, allowed)
    if not any(isinstance(c, dict) and c.get("name") == "sharding_indexed" for c in codecs):
        _require_chunk(chunks, n_bytes)


def _require_known_codecs(codecs: Any, allowed: Allowed, n_bytes: int) -> None:
    """Raise ValueError for a codec that is not allowed, even if another codec contains it."""
    for given in codecs:
        codec: dict[str, Any] = {"name": given} if isinstance(given, str) else given
        names = [codec[key] for key in ("name", "id") if key in codec]  # Zarr 3 and 2
        for name in names or [None]:
            if str(name).removeprefix("numcodecs.") not in allowed.codecs:
                raise ValueError(
                    f"is decoded by {name!r}, which is not a codec known to be safe: it might run "
                    "code from the file; if you trust the author of the file, open it with "
                    "other software and write it again, compressed by one of blosc, gzip and zstd"
                )
        for options in (codec, codec.get("configuration") or {}):
            for key in ("astype", "dtype", "decode_dtype", "encode_dtype"):
                if key in options and np.dtype(str(options[key])).kind not in "biufcmM":
                    raise ValueError(f"is decoded to {options[key]!r}, which are not numbers")
            if "chunk_shape" in options:
                _require_chunk(options["chunk_shape"], n_bytes)
            for key in ("codecs", "index_codecs"):
                _require_known_codecs(options.get(key) or (), allowed, n_bytes)


def _type_of_v2(content: Mapping[str, Any]) -> tuple[str, int]:
    """Return the type of a Zarr 2 array, as a letter of NumPy, and the bytes of an element."""
    text = str(content["dtype"])
    found = re.fullmatch(r"[<>|=]?([biufcmMSUVO])(\d{0,9})(\[\w{1,9}\])?", text)
    if not found:
        raise ValueError(f"is of the type {text:.60}, which is not known")
    kind, size = found[1], int(found[2] or 8)
    coding = [codec["id"] for codec in content.get("filters") or ()][:1]
    if kind == "O" and coding not in (["vlen-utf8"], ["json2"]):
        raise ValueError(f"holds objects coded by {coding[0] if coding else None!r}, not text")
    return kind, size * (4 if kind == "U" else 1)


def _type_of_v3(content: Mapping[str, Any]) -> tuple[str, int]:
    """Return the type of a Zarr 3 array, as a letter of NumPy, and the bytes of an element."""
    given = content["data_type"]
    name = given if isinstance(given, str) else given["name"]
    size = 0 if isinstance(given, str) else given.get("configuration", {}).get("length_bytes", 0)
    number = re.fullmatch(r"(bool|int|uint|float|complex)(8|16|32|64|128)?", str(name))
    if number:
        return number[1][0], int(number[2] or 8) // 8
    others = {
        "string": ("O", 8),
        "variable_length_utf8": ("O", 8),
        "numpy.datetime64": ("M", 8),
        "numpy.timedelta64": ("m", 8),
        "fixed_length_utf32": ("U", size),
        "null_terminated_bytes": ("S", size),
    }
    if name not in others:
        raise ValueError(f"is of the type {name!s:.60}, which is not known")
    kind, size = others[name]
    return kind, _whole(size)


def _whole(value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"has {value!r} instead of a whole number of at least {least}")
    return value


def _require_size(shape: Any, chunks: Any, n_bytes: int, allowed: Allowed) -> None:
    """Raise ValueError for an array with too many bytes or too many chunks."""
    sizes, of_chunks = [_whole(n) for n in shape], [_whole(n, 1) for n in chunks]
    if len(sizes) != len(of_chunks):
        raise ValueError(f"has the shape {sizes}, but chunks of the shape {of_chunks}")
    _require_bytes(sizes, n_bytes)
    n_chunks = math.prod(-(-n // size) for n, size in zip(sizes, of_chunks, strict=True))
    if allowed.chunks is not None and n_chunks > allowed.chunks:
        raise ValueError(f"claims {n_chunks} chunks, more than {allowed.chunks}")


def _require_bytes(sizes: Sequence[int], n_bytes: int, named: str = "") -> int:
    """Return the bytes of an array; raise ValueError if there are too many."""
    claimed = math.prod(sizes) * n_bytes
    # One-dimensional coordinates are read when a store is opened.
    limit = LIMIT_READ if len(sizes) <= 1 else LIMIT_ARRAY
    if claimed > limit:
        raise ValueError(f"{named}claims {claimed} bytes, more than {limit}")
    return claimed


def _require_chunk(chunks: Any, n_bytes: int) -> None:
    """Raise ValueError for a chunk that is too large to decode in memory."""
    claimed = math.prod(_whole(n, 1) for n in chunks) * n_bytes
    if claimed > LIMIT_READ:
        raise ValueError(
            f"has chunks of {claimed} bytes, more than {LIMIT_READ}; write it in smaller chunks"
        )


def _require_known_file(path: Path, allowed: Allowed) -> None:
    """Raise ValueError unless a netCDF file has plain types, in plausible sizes."""
    import netCDF4
    from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

    # The library is not thread-safe, and others may be reading through xarray.
    file, whole = open_file(path).ds, 0
    with NETCDF4_PYTHON_LOCK:
        for name, variable in file.variables.items():
            named, dtype = f"the variable {name!r}", variable.dtype
            own = isinstance(variable.datatype, (netCDF4.CompoundType, netCDF4.VLType))
            if own and dtype is not str:
                raise ValueError(f"{named} is of a type that the file defines itself")
            kind, n_bytes = ("O", 8) if dtype is str else (dtype.kind, dtype.itemsize)
            if kind not in allowed.kinds:
                raise ValueError(f"{named} has a type that xrecal does not read, of kind {kind!r}")
            whole += _require_bytes(variable.shape, n_bytes, f"{named} ")
    there = path.stat().st_size
    if allowed.ratio is not None and whole > LIMIT_READ + allowed.ratio * there:
        raise ValueError(f"its variables claim {whole} bytes, but the file has {there}")
