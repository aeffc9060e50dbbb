"""Storage of models in netCDF or Zarr, as one Dataset of names and numbers."""
