"""Damaged and hostile copies of stored models, drawn from a seed, and what may not happen.

A store is here a dict from the path of each file in it to its bytes; a netCDF file has one, "".
"""

import copy
import json
import random
import sys
from contextlib import contextmanager
from pathlib import Path

import netCDF4

ODD = [
    -1, 0, 1, 3, 10**15, -(10**15), 2**63, 10**30, 1e300, -0.5, float("nan"), float("inf"), True,
    None, "", "x", "NaN", "pickle", "vlen-utf8", "|O", "<U999999999", "datetime64[ns]", [], {},
    [[]], [1], {"id": "pickle"}, {"float": "nan"}, {"class": "os.system", "fields": {}},
    {"list": [1]}, "a" * 10_000,
]  # fmt: skip
"""What a value is replaced by."""

RUNS = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen")
_heard: set[str] = set()
_listening: list[bool] = []


def _listen(event, args):
    if not _listening:
        return
    if event == "exec" and not Path(args[0].co_filename).is_file():
        _heard.add(f"exec {args[0].co_filename}")
    elif event in RUNS or event == "pickle.find_class":
        _heard.add(f"{event} {args}")


sys.addaudithook(_listen)  # which stays, and hears nothing but what is done within `heard`


@contextmanager
def heard():
    """Programs that are started, classes that are unpickled, code that is run and not imported."""
    _heard.clear()
    _listening.append(True)
    try:
        yield _heard
    finally:
        _listening.clear()


def read_files(path):
    """Content of a store or file."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def write_files(files, path):
    """A store or file of this content."""
    for name, content in files.items():
        file = path / name if name else path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    path.mkdir(exist_ok=True) if "" not in files else None


def mutate(files, rng: random.Random, folder: Path):
    """A copy of a store or file in which one thing, or a few, are other than they were."""
    changed = dict(files)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        kinds = FILE if "" in changed else STORE
        rng.choice(kinds)(changed, rng, folder)
    return changed


def _flip(files, rng, _):
    """Bytes of a file."""
    name = rng.choice(sorted(files))
    content = bytearray(files[name])
    for _ in range(rng.choice([1, 1, 3, 30]) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)
    files[name] = bytes(content)


def _cut(files, rng, _):
    """The end of a file."""
    name = rng.choice(sorted(files))
    files[name] = files[name][: rng.randrange(len(files[name]) + 1)]


def _lose(files, rng, _):
    """A file, and perhaps the others of its array."""
    if len(files) > 1:
        name = rng.choice(sorted(files))
        whole = rng.random() < 0.3
        for other in sorted(files):
            if other == name or (whole and Path(other).parent == Path(name).parent):
                files.pop(other, None)


def _swap(files, rng, _):
    """Two files."""
    a, b = rng.choice(sorted(files)), rng.choice(sorted(files))
    files[a], files[b] = files[b], files[a]


def _metadata(files, rng, _):
    """A value of a file of metadata."""
    names = [n for n in sorted(files) if Path(n).name in ("zarr.json", ".zarray", ".zattrs")]
    if names:
        name = rng.choice(names)
        try:
            value = json.loads(files[name])
        except ValueError:  # an earlier change has seen to it
            return
        files[name] = json.dumps(_changed(value, rng)).encode()


def _texts(files, rng, _):
    """A value of the settings, or of the record of variables, which are JSON in attributes."""
    for name in ("zarr.json", ".zattrs"):
        if name not in files:
            continue
        try:
            value = json.loads(files[name])
            attrs = value["attributes"] if name == "zarr.json" else value
            key = rng.choice([k for k in attrs if k.startswith("xrecal_") and k != "xrecal_schema"])
            attrs[key] = json.dumps(_changed(json.loads(attrs[key]), rng))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return
        files[name] = json.dumps(value).encode()


def _in_netcdf(files, rng, folder):
    """An attribute, a value of the settings, or numbers of a netCDF file."""
    path = folder / "changed.nc"
    path.write_bytes(files[""])
    try:
        with netCDF4.Dataset(path, "a") as file:
            if rng.random() < 0.5:
                key = rng.choice(["xrecal_model", "xrecal_variables"])
                file.setncattr(key, json.dumps(_changed(json.loads(file.getncattr(key)), rng)))
            else:
                variable = file[rng.choice(sorted(file.variables))]
                variable.set_auto_maskandscale(False)
                odd = rng.choice([-1, 0, 3, 127, -128, 1e6, 1e300, float("nan"), -float("inf")])
                if variable.dtype is not str and variable.size:
                    if variable.dtype.kind in "iu":
                        odd = int(odd) % 128 - 2 if abs(odd) < 1e9 else 100
                    flat = variable[...].reshape(-1)
                    flat[rng.randrange(flat.size)] = odd
                    variable[...] = flat.reshape(variable.shape)
    except (OSError, RuntimeError, ValueError, KeyError, IndexError, AttributeError):
        return  # an earlier change has seen to it
    files[""] = path.read_bytes()


def _changed(value, rng):
    """JSON of which one value is another, is lost, is nested or stands twice."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return rng.choice(ODD)
    holder, key = rng.choice(places)
    how = rng.random()
    if how < 0.6:
        holder[key] = rng.choice(ODD)
    elif how < 0.75:
        del holder[key]
    elif how < 0.85:
        for _ in range(rng.choice([1, 3, 50, 200])):
            holder[key] = rng.choice([[holder[key]], {"list": [holder[key]]}])
    elif isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[f"{key}_"] = holder.pop(key)
    return value


def _places(value):
    """All holders and keys within JSON."""
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)


STORE = [_flip, _cut, _lose, _swap, _metadata, _metadata, _metadata, _texts, _texts, _texts]
# No flipped bytes: HDF5, which is compiled code, does not survive all of them, and that is no
# error that Python could raise. docs/limits.md says so.
FILE = [_cut, _in_netcdf, _in_netcdf, _in_netcdf, _in_netcdf]
