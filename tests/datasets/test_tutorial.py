import functools
import hashlib
import http.server
import re
import sys
import threading

import numpy as np
import pytest
import xarray as xr

from xrecal import datasets
from xrecal.datasets import tutorial

STARTS = [14245.0, 14250.0, 14256.0]  # days since 1960-01-01: 1999-01-01, 01-06 and 01-12
MISSING = "1999-01-07"
ABSENT = "1999-01-15"


def hindcast_file():
    """In the layout of GMAO-GEOS-V2p1.RMM1.nc, of fewer starts, members and leads."""
    values = np.random.default_rng(1).standard_normal((3, 2, 4)).astype(np.float32)
    start = {"units": "days since 1960-01-01", "calendar": "standard"}
    return xr.Dataset(
        {"RMM1": (("S", "M", "L"), values, {"units": "unitless", "long_name": "RMM1"})},
        coords={
            "S": ("S", np.array(STARTS, dtype=np.float32), start),
            "M": ("M", np.array([1, 2], dtype=np.float32), {"units": "ids"}),
            "L": ("L", np.arange(4, dtype=np.float32) + 0.5, {"units": "days"}),
        },
        attrs={"Conventions": "IRIDL"},
    )


def observed_file():
    """Daily indices: one marked missing, one absent, one given twice."""
    time = np.arange("1998-12-01", "1999-02-01", dtype="datetime64[D]").astype("datetime64[ns]")
    values = np.random.default_rng(2).standard_normal(time.size)
    values[time == np.datetime64(MISSING)] = 1e36
    observed = xr.Dataset(dict.fromkeys(("rmm1", "rmm2"), ("time", values)), {"time": time})
    observed = observed.sel(time=time != np.datetime64(ABSENT))
    return xr.concat([observed, observed.isel(time=[31]) + 5.0], "time")


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A server of both files, the data set that refers to it and the paths it was asked for."""
    monkeypatch.setenv("XRECAL_CACHE_DIR", str(tmp_path / "cache"))
    served = tmp_path / "served"
    served.mkdir()
    hindcast_file().to_netcdf(served / "hindcast.nc")
    observed_file().to_netcdf(served / "observed.nc")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=served)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield mirrored(f"http://127.0.0.1:{server.server_port}", served), asked
        server.shutdown()
        thread.join()


def mirrored(address, served):
    return tutorial.TUTORIALS["mjo_rmm1"].download._replace(
        forecast=tutorial.RemoteFile(f"{address}/hindcast.nc", md5(served / "hindcast.nc")),
        observation=tutorial.RemoteFile(f"{address}/observed.nc", md5(served / "observed.nc")),
    )


@pytest.fixture
def opened(mirror, monkeypatch):
    download_from(mirror[0], monkeypatch)
    return datasets.open_tutorial("mjo_rmm1")


def download_from(source, monkeypatch):
    """Replace the addresses of the data set; the reader has no data of their own."""
    monkeypatch.delenv("XRECAL_DATA", raising=False)
    known = tutorial.TUTORIALS["mjo_rmm1"]._replace(download=source)
    monkeypatch.setitem(tutorial.TUTORIALS, "mjo_rmm1", known)


def test_every_value_is_where_its_labels_say(opened):
    assert opened.forecast.dims == ("init", "lead", "member")
    assert opened.observation.dims == opened.valid_time.dims == ("init", "lead")
    assert opened.forecast.dtype == np.float32
    original, observed = hindcast_file(), observed_file()
    first = {day: at for at, day in reversed(list(enumerate(observed.time.values)))}
    for i, start in enumerate(STARTS):
        init = np.datetime64("1960-01-01") + np.timedelta64(int(start), "D")
        assert opened.init.values[i] == init
        for k in range(4):
            valid = init + np.timedelta64(k, "D")
            assert opened.valid_time.values[i, k] == valid
            members = original.RMM1.values[i, :, k]
            np.testing.assert_array_equal(opened.forecast.sel(init=init, lead=k), members)
            seen = opened.observation.sel(init=init, lead=k)
            if str(valid) in (MISSING, ABSENT):
                assert np.isnan(seen)
            else:
                assert seen == observed.rmm1.values[first[valid]]
    assert np.isnan(opened.observation).sum() == 2


def test_labels_and_attributes(opened):
    assert opened.init.dtype == opened.valid_time.dtype == np.dtype("datetime64[ns]")
    assert opened.lead.dtype == opened.member.dtype == np.int64
    assert opened.lead.attrs == {"units": "days", "standard_name": "forecast_period"}
    assert opened.member.values.tolist() == [1, 2]
    assert opened.member.attrs["standard_name"] == "realization"
    assert opened.init.attrs["standard_name"] == "forecast_reference_time"
    assert opened.forecast.attrs["units"] == opened.observation.attrs["units"] == "1"
    assert "hindcast.nc" in opened.attrs["source"]
    assert "observed.nc" in opened.attrs["source"]
    assert "MIT" in opened.attrs["license"]
    assert "10.1175/BAMS-D-18-0270.1" in opened.attrs["references"]
    assert "file" not in opened.attrs


def test_result_can_be_written(opened, tmp_path):
    opened.to_netcdf(tmp_path / "again.nc")
    with xr.open_dataset(tmp_path / "again.nc", decode_timedelta=False) as again:
        xr.testing.assert_identical(again.load(), opened)


def test_second_call_asks_for_nothing(mirror):
    source, asked = mirror
    first = tutorial.load(source)
    assert asked == ["/hindcast.nc", "/observed.nc"]
    xr.testing.assert_identical(tutorial.load(source), first)
    assert len(asked) == 2


def test_file_of_another_checksum_is_refused(mirror, tmp_path):
    source, _ = mirror
    wrong = source.observation._replace(md5="0" * 32)
    with pytest.raises(ValueError, match=r"does not match the known hash: expected md5:0{32}"):
        tutorial.load(source._replace(observation=wrong))
    assert [path.name for path in (tmp_path / "cache" / "tutorial").iterdir()] == ["hindcast.nc"]


def test_damaged_copy_is_downloaded_again(mirror, tmp_path):
    source, asked = mirror
    first = tutorial.load(source)
    (tmp_path / "cache" / "tutorial" / "observed.nc").write_bytes(b"damaged")
    xr.testing.assert_identical(tutorial.load(source), first)
    assert asked == ["/hindcast.nc", "/observed.nc", "/observed.nc"]


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A folder in which both files were put by hand."""
    monkeypatch.setenv("XRECAL_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "tutorial"
    folder.mkdir()
    hindcast_file().to_netcdf(folder / "hindcast.nc")
    observed_file().to_netcdf(folder / "observed.nc")
    return folder


@pytest.fixture
def unreachable(cached):
    return mirrored("http://127.0.0.1:1", cached)  # the first port serves nothing


def test_files_put_there_by_hand_need_no_network(unreachable):
    assert tutorial.load(unreachable).sizes == {"init": 3, "lead": 4, "member": 2}


def test_without_network_the_message_says_what_to_do(unreachable, cached, monkeypatch):
    (cached / "observed.nc").unlink()
    expected = (
        rf"http://127\.0\.0\.1:1/observed\.nc could not be downloaded .*; without internet, put "
        rf"this file \(MD5 sum {unreachable.observation.md5}\) at "
        rf"{re.escape(str(cached / 'observed.nc'))}, or make a synthetic twin of the data: "
        r"open_tutorial\(\.\.\., twin=True\)"
    )
    download_from(unreachable, monkeypatch)
    with pytest.raises(ConnectionError, match=expected):
        datasets.open_tutorial("mjo_rmm1")
    assert datasets.open_tutorial("mjo_rmm1", twin=True).sizes["init"] == 510


def test_file_that_the_server_lacks(mirror):
    source, _ = mirror
    gone = source.forecast._replace(url=source.forecast.url.replace("hindcast", "gone"))
    with pytest.raises(ConnectionError, match=r"gone\.nc could not be downloaded \(404"):
        tutorial.load(source._replace(forecast=gone))


def test_other_variables_are_an_error(cached):
    path = cached / "observed.nc"
    observed_file().rename(rmm1="index").to_netcdf(path)
    message = (
        r"observed\.nc holds .*index\(time\).* instead of rmm1\(time\) with its coordinates; "
        r"this release of xrecal cannot read it"
    )
    with pytest.raises(ValueError, match=message):
        tutorial.load(mirrored("http://127.0.0.1:1", cached))


def test_dimension_without_labels_is_an_error(cached):
    hindcast_file().drop_vars("L").to_netcdf(cached / "hindcast.nc")
    with pytest.raises(ValueError, match=r"instead of RMM1\(S, M, L\) with its coordinates"):
        tutorial.load(mirrored("http://127.0.0.1:1", cached))


def test_leads_that_are_no_middles_of_days_are_an_error(cached):
    hindcast_file().assign_coords(L=[1.0, 2.0, 3.0, 4.0]).to_netcdf(cached / "hindcast.nc")
    with pytest.raises(ValueError, match=r"hindcast\.nc: L holds \[1\.0, .* 0\.5, 1\.5"):
        tutorial.load(mirrored("http://127.0.0.1:1", cached))


def test_unknown_name():
    message = r"no tutorial data set 'enso'; give one of: .*'frankfurt_rain', .*'mjo_rmm1'"
    with pytest.raises(ValueError, match=message):
        datasets.open_tutorial("enso")


def test_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("XRECAL_DATA", raising=False)
    expected = r"needs pooch, .* pip install 'xrecal\[tutorial\]', or .*twin=True"
    with pytest.raises(ImportError, match=expected):
        datasets.open_tutorial("mjo_rmm1")


DOWNLOADS = {name: one.download for name, one in tutorial.TUTORIALS.items() if one.download}


@pytest.mark.parametrize("name", DOWNLOADS)
def test_addresses_are_pinned_and_files_have_checksums(name):
    source = DOWNLOADS[name]
    for file in (source.forecast, source.observation):
        address = r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/[\w./-]+\.nc"
        assert re.fullmatch(address, file.url)
        assert re.fullmatch(r"[0-9a-f]{32}", file.md5)
        assert file.name == file.url.rpartition("/")[2]
    assert source.forecast.name != source.observation.name
    assert {"title", "license", "references", "comment"} <= set(source.attrs)
