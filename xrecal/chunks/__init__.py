"""Work on chunks: the one wrapper of Dask, BLAS threads, devices, warnings given once a call."""
