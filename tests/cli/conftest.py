import pytest

from .files import FEW, HINDCAST, TRUTH, write


@pytest.fixture
def files(tmp_path):
    """The data sets as netCDF files."""
    return write(tmp_path)


@pytest.fixture(scope="session")
def few(tmp_path_factory):
    """Paths of the hindcast and the observations at a few places."""
    folder = tmp_path_factory.mktemp("few")
    paths = folder / "hindcast.nc", folder / "truth.nc"
    for array, path in zip((HINDCAST, TRUTH), paths, strict=True):
        array.isel(FEW).to_dataset(name="t2m").to_netcdf(path)
    return paths
