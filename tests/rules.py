"""scoringrules in NumPy: where it finds Numba, importing it compiles all its functions."""

import sys

import pytest

with pytest.MonkeyPatch.context() as patch:
    patch.setitem(sys.modules, "numba", None)
    import scoringrules

__all__ = ["scoringrules"]
