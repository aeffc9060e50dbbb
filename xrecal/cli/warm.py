"""Compilation of all functions before use, for containers, clusters and cron jobs."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from time import perf_counter
from typing import Any

import xrecal.arrays


def compile_all() -> dict[str, Any]:
    """Compile all functions whose compiled code is not on disk yet.

    Returns
    -------
    dict
        ``folder`` of the compiled code, number of ``functions``, number of functions ``compiled``
        by this call, and ``seconds`` of the call.

    Raises
    ------
    OSError
        If the folder of the compiled code cannot be written to.
    """
    from xrecal.arrays.compiled_files import FOLDER, CompiledFiles, folder

    start = perf_counter()
    kernels = every_kernel()
    for kernel in kernels:
        kernel.compile(None)
    if CompiledFiles.error is not None:
        raise OSError(
            f"compiled code could not be kept: {CompiledFiles.error}; set {FOLDER} to a folder "
            "that can be written to"
        ) from CompiledFiles.error
    compiled = sum(bool(kernel.stats.cache_misses) for kernel in kernels)
    return {
        "folder": str(folder()),
        "functions": len(kernels),
        "compiled": compiled,
        "seconds": round(perf_counter() - start, 1),
    }


def every_kernel() -> list[Any]:
    """Import all modules with functions that xrecal compiles, and return these functions."""
    from xrecal.arrays.compiled import all_kernels

    for module in walk_packages(xrecal.arrays.__path__, "xrecal.arrays."):
        if not module.name.startswith("xrecal.arrays.device"):  # CUDA's compiler has its own cache
            import_module(module.name)
    import_module("xrecal.datasets.lorenz96_model")
    return all_kernels()
