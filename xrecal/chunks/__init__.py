"""Work on chunks of places: calls of Dask, threads of BLAS, GPUs, progress and warnings."""
