"""Storage of models in netCDF or Zarr, and safe reading and writing of other files."""
