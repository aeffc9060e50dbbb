"""A netCDF file is open once in a process, whoever reads it."""

import os

import numpy as np
import pytest
import xarray as xr

from tests.processes import python
from xrecal.storage.untrusted import DATA, open_known


@pytest.fixture
def path(tmp_path):
    names = np.array(["Oslo", "Bern"], object)
    array = xr.DataArray(np.arange(6.0).reshape(3, 2), {"place": names}, ["time", "place"], "v")
    array.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    return tmp_path / "a.nc"


def n_open(path):
    """Number of times that this process has a file open."""
    there = path.stat()
    links = [os.path.join("/dev/fd", name) for name in os.listdir("/dev/fd")]
    return sum(os.path.samestat(os.stat(one), there) for one in links if os.path.exists(one))


def test_all_readers_share_one_open_file(path, tmp_path):
    link = tmp_path / "link.nc"
    link.symlink_to(path)
    a, b = open_known(path, DATA), open_known(link, DATA, decode_cf=False, chunks={})
    assert n_open(path) == 1
    a.close()  # the other opens it again
    assert b["v"].sum().compute() == 15
    assert list(a["place"].values) == ["Oslo", "Bern"]
    assert n_open(path) == 1
    del a, b
    assert n_open(path) == 0


def test_another_file_at_the_path_is_opened_anew(path):
    before = open_known(path, DATA)
    new = path.with_name("new.nc")
    (before.load() + 1).to_netcdf(new, engine="netcdf4")
    held = open_known(path, DATA)
    new.replace(path)
    assert open_known(path, DATA)["v"].sum() == 21
    assert held["v"].sum() == 15


def test_a_file_is_read_again_and_again(path):
    code = """
import sys
from pathlib import Path
from xrecal.storage.untrusted import DATA, open_known
held = None
for i in range(30):
    before, held = held, open_known(Path(sys.argv[1]), DATA)
    held["place"].load()
    if i % 3:
        held.close()
"""
    assert python(code, path, MALLOC_PERTURB_="165").code == 0
