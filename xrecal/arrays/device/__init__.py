"""The embedding for many locations at once, written for any array library.

CuPy arrays are served from here; see :mod:`xrecal.arrays.dispatch`. The first axis counts
locations. Bodies keep to functions that NumPy, CuPy and the array API standard share, with a few
more in :mod:`.namespace`; the comparison of ensembles is a CUDA kernel. All compute in float64 and
return the floating type that the functions for NumPy return.

``distance`` and ``ensembles`` compare ensembles, ``cases`` puts the cases of a location in order,
``choosing`` tries the whole grid of ridges at once, ``ckme`` fits and ``weights`` predicts. Shapes
are those of the location with most cases: where another has fewer, entries have no weight.
"""
