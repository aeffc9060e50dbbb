"""Machine code on disk, so that each function is compiled once for all processes.

Each compiled function has its own file. The name of the file contains a digest of everything that
determines the machine code: the code of the function and of all functions that it calls, the types
of its arguments, the processor, and the versions of Python, Numba, llvmlite and NumPy. So processes
that start at the same time write equivalent files. The folder needs no index, which simultaneous
processes could damage. A file gets its name only when it is complete.

The file starts with a digest, followed by a pickle with the machine code. The digest detects
accidental damage, but no forgery. Keep the files in a folder that nobody else can write to, like
the compiled files of Python.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
import platformdirs
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from .whole_files import write_whole

FOLDER = "XRECAL_CACHE_DIR"
"""Environment variable with the path of a folder for compiled code; without it, compiled code is in
the user's cache."""

_OPTIONS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Settings of Numba that change the machine code."""

_VERSIONS = (
    "2",  # version of the files
    sys.implementation.cache_tag,
    numba.__version__,
    llvmlite.__version__,
    np.__version__,
    *(str(getattr(config, option)) for option in _OPTIONS),
)


def folder() -> Path:
    """Return the folder of compiled code, in ``XRECAL_CACHE_DIR`` or in the user's cache.

    Raises
    ------
    OSError
        If the path of the folder is not absolute, or the user has no home folder. In these cases
        the code could come from a folder that somebody else can write to.
    """
    given = os.environ.get(FOLDER)
    path = Path(given or platformdirs.user_cache_dir("xrecal", appauthor=False)) / "compiled"
    if not path.is_absolute():
        raise OSError(errno.EINVAL, "not an absolute path", str(path))
    cache = path.parents[1]
    home = cache if str(cache) == os.environ.get("XDG_CACHE_HOME") else cache.parent
    if not given and not home.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {home}", str(path))
    return path


class CompiledFiles(NullCache):
    """File with the machine code of one function, as a cache for Numba."""

    error: OSError | None = None
    """First error of this process when it wrote such files; None if there was no error"""

    def __init__(self, function: Callable[..., Any], types: Callable[..., Any]) -> None:
        self._function, self._types = function, types

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled function; return None if there is no valid file."""
        rtsys.initialize(target_context)  # compiled code needs only the memory functions of Numba
        name = self._name(target_context.codegen())
        try:
            content = (folder() / name).read_bytes()
        except OSError:
            return None
        digest, payload = content[:32], content[32:]
        if digest != _digest(name.encode(), payload):
            return None  # truncated, changed, or of another function; it is replaced
        return CompileResult._rebuild(target_context, *pickle.loads(payload))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled function to its file.

        If the method cannot write the file, it warns, and only this process can use the code.
        """
        name, payload = self._name(data.codegen), dumps(_reduced(data))
        try:
            folder().mkdir(parents=True, exist_ok=True)
            write_whole(folder() / name, _digest(name.encode(), payload) + payload)
        except OSError as error:
            _note(error)

    def _name(self, codegen: Any) -> str:
        """Return the name of the file."""
        decisive = (
            *_VERSIONS,
            codegen.magic_tuple(),
            str(self._types(self._function)),
            *_content(self._function),
        )
        digest = _digest(*(repr(part).encode() for part in decisive)).hex()
        return f"{self._function.__module__}.{self._function.__name__}-{digest[:40]}"


def _reduced(compiled: Any) -> tuple[Any, ...]:
    """Return the parts of a compiled function that its file stores.

    Each function within the code has an environment, which names the module of the function. The
    environments of Numba's own functions are empty. The file stores only the names of such empty
    environments. If it stored the modules of Numba too, the import of these modules would take
    longer than the computation of all forecasts of a station for one day.
    """
    *parts, environments = compiled._reduce()
    return *parts, [
        _Bare(one.env_name)
        if not one.consts and one.globals["__name__"].startswith("numba.")
        else one
        for one in environments
    ]


class _Bare:
    """Object in place of an environment; a pickle stores the name of this object, not a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _environment, (self._name,)


def _environment(name: str) -> Any:
    """Return the environment with a name; make an empty environment if the process has none."""
    found = lookup_environment(name)
    if found is None:
        found = Environment({})
        found.env_name = name
        Environment._memo[name] = found
    return found


def _digest(*parts: bytes) -> bytes:
    """Compute the SHA-256 digest of the contents and lengths of several parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def _note(error: OSError) -> None:
    """Warn, once per process, that compiled code could not be stored, and explain what to do."""
    if CompiledFiles.error is None:
        CompiledFiles.error = error
        warnings.warn(
            f"compiled code could not be kept in {error.filename}: {error.strerror}. So each "
            f"process needs some seconds to compile it anew; set {FOLDER} to a writable folder.",
            stacklevel=2,
        )


def _content(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield everything that determines the machine code of a function, in a fixed order.

    The machine code of a function contains the code of the functions that it calls. So this
    generator yields their content, too.
    """
    seen: set[Any] = set()
    waiting: list[Any] = [function]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        code, scope = part.__code__, part.__globals__
        yield part.__qualname__
        names = {name: scope[name] for name in _names(code) if name in scope}
        cells = (cell.cell_contents for cell in part.__closure__ or ())
        yield from _instructions(code)
        for name, value in (*sorted(names.items()), *zip(code.co_freevars, cells, strict=True)):
            if isinstance(value, Dispatcher):
                yield name, value.py_func.__qualname__
                waiting.append(value.py_func)
            else:
                yield name, _constant(value)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names in a function, and in functions defined within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _instructions(code: CodeType) -> Iterator[Any]:
    """Yield instructions and constants of a function, and of functions defined within it."""
    yield code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield repr(constant)


def _constant(value: Any) -> Any:
    """Return the part of a global value that determines compiled code."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, (type, FunctionType)):
        return value.__qualname__, getattr(value, "_fields", ())
    return repr(value)
