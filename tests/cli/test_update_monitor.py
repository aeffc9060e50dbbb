"""``xrecal update`` and ``xrecal monitor`` on files."""

import numpy as np
import pytest
import xarray as xr

import xrecal

from .files import HINDCAST, TRUTH, refused, run, succeed, write


def stored(folder, cases, method, kind="nc"):
    path = folder / f"model.{kind}"
    HINDCAST[cases].recal.fit(TRUTH[cases], method).save(path)
    return path


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_update_is_that_of_python(tmp_path, kind):
    files, target = write(tmp_path), tmp_path / f"updated.{kind}"
    model = stored(tmp_path, slice(0, 40), xrecal.EMOS(), kind)
    done = succeed("update", model, files.hindcast, files.truth, target, "--json")
    assert done.data["variables"] == {"t2m": {"learned": 8 * 12, "revised": 0}}
    expected = HINDCAST[:40].recal.fit(TRUTH[:40], xrecal.EMOS()).update(HINDCAST, TRUTH)
    found = xrecal.open_recalibrator(target).load()
    xr.testing.assert_identical(found.state, expected.state)
    again = run("update", model, files.hindcast, files.truth, target, "--resume", "--json")
    assert (again.code, again.data["output"]) == (0, str(target))
    assert "exists" in refused("update", model, files.hindcast, files.truth, target)
    with_itself = refused("update", model, files.hindcast, files.truth, model, "--overwrite")
    assert "is the model" in with_itself


def test_update_counts_revisions_and_knows_pools(tmp_path):
    files = write(tmp_path)
    revised = TRUTH.copy()
    revised[3, 0, 0] += 1
    revised[5, 1, 1] = np.nan
    revised.to_dataset(name="t2m").to_netcdf(tmp_path / "revised.nc")
    model = tmp_path / "model.nc"
    HINDCAST[:40].recal.fit(TRUTH[:40], xrecal.EMOS(), pool="lat").save(model)
    target = tmp_path / "updated.nc"
    done = succeed("update", model, files.hindcast, tmp_path / "revised.nc", target, "--json")
    assert done.data["variables"] == {"t2m": {"learned": 8 * 12, "revised": 1}}
    planned = succeed(
        "update", target, files.hindcast, files.truth, tmp_path / "x.nc", "--dry-run", "--json"
    )
    assert planned.data["variables"] == {"t2m": {"learned": 0, "revised": 1}}
    assert not (tmp_path / "x.nc").exists()


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_monitor_is_that_of_python(tmp_path, kind):
    files, target = write(tmp_path), tmp_path / f"seen.{kind}"
    args = "monitor", files.hindcast, files.truth, target, "--restart", "never", "--json", "--quiet"
    done = run(*args)
    expected = HINDCAST.recal.monitor(TRUTH, restart=None)
    n_alarms = int(expected["alarm"].isel(time=-1).sum())
    assert (done.code, done.data["alarms"]) == (10, n_alarms)
    assert n_alarms > 0
    with xr.open_dataset(target) as found:
        assert found["t2m_alarm"].dtype == bool
        for name in expected.data_vars:
            xr.testing.assert_equal(
                found[f"t2m_{name}"].rename(None).transpose(*expected[name].dims),
                expected[name].rename(None),
            )
    again = run(*args[:-1], "--resume")
    assert again.code == 10
    assert (
        run("monitor", files.hindcast, files.truth, tmp_path / "y.nc", "--restart", "0").code == 2
    )


def test_a_calibrated_forecast_exits_with_zero(tmp_path):
    rng = np.random.default_rng(0)
    time = {"time": xr.date_range("2001-01-01", periods=40, use_cftime=False)}
    members = xr.DataArray(rng.normal(size=(40, 30)), time, ["time", "member"], name="t")
    truth = xr.DataArray(rng.normal(size=40), time, ["time"], name="t")
    members.to_dataset().to_netcdf(tmp_path / "f.nc")
    truth.to_dataset().to_netcdf(tmp_path / "o.nc")
    done = succeed("monitor", tmp_path / "f.nc", tmp_path / "o.nc", tmp_path / "seen.nc", "--json")
    assert (done.data["alarms"], done.data["changes"]) == (0, 0)
