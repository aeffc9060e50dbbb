"""A module like CuPy without a device: arrays of its own that never become NumPy's by themselves.

What CuPy refuses is refused: turning an array into one of NumPy, and functions and operators on
arrays of both. Only functions that CuPy has are there. Values are held by NumPy inside.
"""

import types
from typing import Any

import numpy as np


def _words(text: str) -> list[str]:
    return text.split()


NAMES = _words(
    """
    abs all any arange argmax argsort astype broadcast_arrays broadcast_to clip concat
    concatenate copy cos count_nonzero cumsum diff empty empty_like exp expand_dims eye flip
    floor full full_like isfinite isinf isnan log10 logical_and logical_not logical_or
    matmul max maximum mean min minimum moveaxis nan_to_num nanmax nanmean nanmin nanstd nansum
    nanvar ndim ones ones_like pad prod ravel reshape round searchsorted shape sign sin sort sqrt
    squeeze stack std
    sum swapaxes take take_along_axis tensordot tile transpose tril var where zeros
    zeros_like
    """
)
LINALG = ["cholesky", "eigh", "inv", "solve"]
TYPES = ["bool", "float32", "float64", "int8", "int32", "int64"]


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801
    """An array that its own functions take, and no others."""

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or not hasattr(np, ufunc.__name__):
            return NotImplemented
        return apply(ufunc, *inputs, **kwargs)

    def __array_function__(self, func: Any, _: Any, args: Any, kwargs: Any) -> Any:
        home = module.linalg if func.__module__ == "numpy.linalg" else module
        own = getattr(home, func.__name__, None)
        return NotImplemented if own is None else own(*args, **kwargs)

    def get(self) -> Any:
        return self.host.copy()

    def __getitem__(self, key: Any) -> "ndarray":
        return ndarray(self.host[inner(key, indexing=True)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[inner(key, indexing=True)] = inner(value)

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __int__(self) -> int:
        return int(self.host)

    def __index__(self) -> int:
        return self.host.__index__()

    def __repr__(self) -> str:
        return repr(self.host)

    def __format__(self, spec: str) -> str:
        return format(self.host.item() if self.host.ndim == 0 else self.host, spec)

    def __reduce__(self) -> Any:
        return ndarray, (self.host,)

    def item(self, *args: int) -> Any:
        return self.host.item(*args)


ATTRIBUTES = _words("T dtype flags imag itemsize nbytes ndim real shape size strides")
METHODS = _words(
    """
    all any argmax argsort astype clip copy cumsum max mean min prod ravel reshape squeeze
    std sum swapaxes take transpose var view
    """
)


def inner(value: Any, *, indexing: bool = False) -> Any:
    """What NumPy takes in place of a value; TypeError for arrays of NumPy, except in indices."""
    if isinstance(value, ndarray):
        return value.host
    if isinstance(value, np.ndarray) and not indexing:
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple):
        return tuple(inner(v, indexing=indexing) for v in value)
    if isinstance(value, list):
        return [inner(v, indexing=indexing) for v in value]
    return value


def outer(value: Any) -> Any:
    """Arrays, and numbers that reductions leave, as arrays of this module."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray(value)
    if isinstance(value, tuple):
        return tuple(map(outer, value))
    return value


def apply(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy on arrays of this module."""
    plain = {name: inner(value) for name, value in kwargs.items()}
    with np.errstate(all="ignore"):  # a device has no floating-point warnings
        return outer(function(*map(inner, args), **plain))


def wrapped(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return apply(function, *args, **kwargs)

    return call


def method(name: str) -> Any:
    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return apply(getattr(self.host, name), *args, **kwargs)

    return call


for _name in METHODS:
    setattr(ndarray, _name, method(_name))
for _name in ATTRIBUTES:
    setattr(ndarray, _name, property(lambda self, name=_name: outer(getattr(self.host, name))))


def asarray(value: Any, dtype: Any = None, **_: Any) -> ndarray:
    """From host or device, explicitly."""
    host = value.host if isinstance(value, ndarray) else value
    return ndarray(np.asarray(host, dtype=dtype))


def array(value: Any, dtype: Any = None, copy: bool = True, **_: Any) -> ndarray:
    """A copy from host or device, explicitly."""
    return ndarray(np.array(asarray(value).host, dtype=dtype))


def make() -> types.ModuleType:
    """The module, under CuPy's name."""
    found = types.ModuleType("cupy")
    for name in NAMES:
        setattr(found, name, wrapped(getattr(np, name)))
    for name in TYPES:
        setattr(found, name, getattr(np, name))
    found.linalg = types.ModuleType("cupy.linalg")
    for name in LINALG:
        setattr(found.linalg, name, wrapped(getattr(np.linalg, name)))
    found.ndarray, found.asarray, found.array = ndarray, asarray, array
    found.ascontiguousarray = found.asanyarray = asarray
    found.asnumpy = lambda value: value.get() if isinstance(value, ndarray) else np.asarray(value)
    found.newaxis, found.nan, found.inf, found.pi = None, np.nan, np.inf, np.pi
    found.isscalar = np.isscalar
    found.result_type = lambda *args: np.result_type(*(getattr(a, "dtype", a) for a in args))
    found.__version__ = "14.0.0"
    ndarray.__module__, ndarray.__qualname__ = "cupy", "ndarray"
    return found


module = make()
