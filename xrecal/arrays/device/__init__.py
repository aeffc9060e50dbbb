"""The same functions for many locations at once, written for any array library.

CuPy arrays are served from here; see :mod:`xrecal.arrays.dispatch`. The first axis counts
locations. Bodies keep to functions that NumPy, CuPy and the array API standard share, with a few
more in :mod:`.namespace`; loops that array expressions cannot write are CUDA kernels. Decisions of
the search are those of :mod:`xrecal.arrays.ckme.search`, made on the host for each location;
:mod:`.search` answers what they ask, for many locations at once.

Steps have the names that they have for NumPy: `distance`, `kernel`, `covariates`, `location`,
`centre`, `solvers`, `lowrank`, `simplex`, `search`, `ckme`, `weights`, `weighted` and `scores`.
All compute in float64 and return the floating type that the functions for NumPy return.
"""
