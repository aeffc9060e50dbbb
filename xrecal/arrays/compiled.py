"""Compilation of loops to serial machine code, which runs without Python's global lock (GIL).

A function that Python calls is compiled for the types in its annotations. These types are numbers,
arrays (named below, such as ``Matrix``), and tuples of numbers and arrays. The first call compiles
the function, or loads machine code that an earlier process stored on disk.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable
from functools import cache
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from numba import njit, types
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from xrecal.typing import FloatArray, IntArray

from .compiled_files import CompiledFiles


class _Form(NamedTuple):
    """Properties of an array in compiled code; all arrays are contiguous in memory."""

    dtype: str
    axes: int
    filled: bool = False
    """True if the function writes to the array. If False, the array may be read-only, like the
    arrays that Dask passes"""


Vector: TypeAlias = Annotated[FloatArray, _Form("float64", 1)]
Matrix: TypeAlias = Annotated[FloatArray, _Form("float64", 2)]
Cube: TypeAlias = Annotated[FloatArray, _Form("float64", 3)]
Floats4: TypeAlias = Annotated[FloatArray, _Form("float64", 4)]
Floats5: TypeAlias = Annotated[FloatArray, _Form("float64", 5)]
Indices: TypeAlias = Annotated[IntArray, _Form("int64", 1)]
IndexMatrix: TypeAlias = Annotated[IntArray, _Form("int64", 2)]
IndexMatrix32: TypeAlias = Annotated[IntArray, _Form("int32", 2)]
IndexCube: TypeAlias = Annotated[IntArray, _Form("int64", 3)]
Keys: TypeAlias = Annotated[IntArray, _Form("uint64", 1)]

OutVector: TypeAlias = Annotated[FloatArray, _Form("float64", 1, filled=True)]
OutMatrix: TypeAlias = Annotated[FloatArray, _Form("float64", 2, filled=True)]
OutCube: TypeAlias = Annotated[FloatArray, _Form("float64", 3, filled=True)]
OutFloats4: TypeAlias = Annotated[FloatArray, _Form("float64", 4, filled=True)]
OutIndices: TypeAlias = Annotated[IntArray, _Form("int64", 1, filled=True)]
OutIndexMatrix: TypeAlias = Annotated[IntArray, _Form("int64", 2, filled=True)]


# In each process, Numba gives compiled functions the numbers 1, 2, 3. The numbers distinguish
# functions with the same name but other closures. If a third process loaded code of two processes,
# it would call the wrong functions. Random numbers are never equal, not even after a fork.
FunctionIdentity._unique_ids = iter(lambda: secrets.randbits(63), None)  # type: ignore[assignment]


class Kernel(CPUDispatcher):
    """Function that is compiled, at its first call, for the types in its annotations.

    A call converts numbers to these types. For an array of another type, it raises TypeError.
    """

    def __init__(
        self,
        py_func: Callable[..., Any],
        locals: Any = None,
        targetoptions: Any = None,
        pipeline_class: type = Compiler,
    ) -> None:
        super().__init__(py_func, locals or {}, targetoptions, pipeline_class)
        self._cache = CompiledFiles(py_func, declared_types)

    def compile(self, sig: Any) -> Any:
        """Load or compile the function for the types in its annotations; ignore ``sig``."""
        with global_compiler_lock:
            if not self.overloads:
                super().compile(declared_types(self.py_func))
                self.disable_compile()
        return self

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        """Return the compiled function.

        Without this method, Numba would compile the function anew for the types of a call.
        """
        self.compile(None)
        return self


def kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel: a compiled function that Python calls.

    Do not pass compiled functions as arguments, because Numba checks arguments at every call. Such
    a check takes as long as a small computation, such as that of one fold, and other threads must
    wait during the check. Write one kernel for each compiled function instead.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    compiled = Kernel(function, targetoptions={"nopython": True, "nogil": True})
    _kernels.append(compiled)
    return compiled


_kernels: list[Kernel] = []

inner = njit(  # type: ignore[call-overload]
    nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Compile a function that only compiled functions call, for the types of each call. Such a function
compiles faster than a kernel, because Python cannot call it."""


def all_kernels() -> list[Kernel]:
    """Return the kernels of all imported modules."""
    return list(_kernels)


@cache
def declared_types(function: Callable[..., Any]) -> tuple[types.Type, ...]:
    """Return the Numba types of the arguments of a function, from its annotations."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(_type_of(hints[name]) for name in inspect.signature(function).parameters)


def _type_of(annotation: Any, within: bool = False) -> types.Type:
    """Return the Numba type of a number, an array, or a tuple of numbers and arrays.

    For a read-only array in the annotations, Numba also accepts a writable array, but not within a
    tuple. So this function returns writable types for all arrays within tuples. These arrays are
    always writable, because all of them come from this package.
    """
    if annotation in _NUMBERS:
        return _NUMBERS[annotation]
    for form in getattr(annotation, "__metadata__", ()):
        readonly = not (form.filled or within)
        return types.Array(getattr(types, form.dtype), form.axes, "C", readonly=readonly)
    parts, cls = get_args(annotation), None
    if hasattr(annotation, "_fields"):
        parts, cls = tuple(get_type_hints(annotation, include_extras=True).values()), annotation
    elif get_origin(annotation) is not tuple:
        raise TypeError(f"compiled code does not take the type {annotation}")
    numba_type: types.Type = types.BaseTuple.from_types(
        tuple(_type_of(part, True) for part in parts), cls
    )
    return numba_type


_NUMBERS = {float: types.float64, int: types.int64, bool: types.boolean}


@inner
def copy(values: Any, out: Any) -> None:
    """Copy values (n,) to ``out``.

    An assignment to a slice does the same, but Numba would need 2 s more to compile it.
    """
    for i in range(out.size):
        out[i] = values[i]
