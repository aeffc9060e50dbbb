import pytest

from .files import write


@pytest.fixture
def files(tmp_path):
    """The data sets as netCDF files."""
    return write(tmp_path)
