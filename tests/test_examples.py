"""The examples run, and print what the README says of them."""

import sys
from pathlib import Path

import pytest

from .marks import requires_data

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch, request):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield __import__(request.param)
    sys.modules.pop(request.param)


def crps(table, label):
    return float(table.crps.sel({"method": label}))


@requires_data("innsbruck_gefs.nc")
@pytest.mark.parametrize("example", ["station_temperature"], indirect=True)
def test_station_temperature(example, capsys):
    table = example.main()
    assert crps(table, "raw") == pytest.approx(8.609, rel=1e-3)
    assert crps(table, "EMOS") == pytest.approx(1.792, rel=1e-3)
    assert crps(table, "CKME") == pytest.approx(1.553, rel=0.01)
    printed = capsys.readouterr().out
    assert "1675 of 1675 matched along 'time'" in printed
    assert "skill v climatology" in printed


@requires_data("frankfurt_rain.nc")
@pytest.mark.parametrize("example", ["station_rain"], indirect=True)
def test_station_rain(example):
    table = example.main()
    assert crps(table, "raw") == pytest.approx(0.955, rel=1e-3)
    assert crps(table, "EMOS") == pytest.approx(0.799, rel=1e-3)
    assert crps(table, "CKME, Laplace loss") == pytest.approx(0.822, rel=0.02)
    assert crps(table, "CKME, CRPS loss") == pytest.approx(0.800, rel=0.02)


@requires_data("cesm_dple_epacific_lagged.nc")
@pytest.mark.parametrize("example", ["fields"], indirect=True)
def test_fields(example, tmp_path, monkeypatch, capsys):
    import matplotlib as mpl

    mpl.use("agg")
    whole = example.open_data
    monkeypatch.setattr(
        example,
        "open_data",
        lambda name: whole(name).isel(nlat=slice(None, None, 6), nlon=slice(None, None, 5)),
    )
    table = example.main(tmp_path / "demo")
    variogram, energy = table["variogram score"], table["energy score"]
    assert variogram["no coherence"] > 2 * variogram["raw"]
    for coherence in ("ecc", "schaake", "dates"):
        assert variogram[coherence] < variogram["raw"]
        assert energy[coherence] < energy["raw"]
    assert table.CRPS["ecc"] == pytest.approx(table.CRPS["no coherence"], rel=1e-6)
    assert "variogram score" in capsys.readouterr().out
    assert (tmp_path / "demo" / "fields.png").stat().st_size > 10_000


@pytest.mark.parametrize("example", ["lorenz96"], indirect=True)
def test_lorenz96(example, tmp_path, monkeypatch, capsys):
    import matplotlib as mpl
    import xarray as xr

    import xrecal

    mpl.use("agg")
    small = xrecal.datasets.lorenz96(n_inits=350, n_locations=4, lead_days=(5, 10))
    monkeypatch.setattr(xrecal.datasets, "lorenz96", lambda: small)
    example.main(tmp_path / "demo")
    assert "CRPS by lead time" in capsys.readouterr().out
    assert (tmp_path / "demo" / "lorenz96.png").stat().st_size > 10_000
    stored = xr.load_dataset(tmp_path / "demo" / "calibrated.nc")
    sums = stored.forecast_weight.sum("member")
    assert abs(sums - 1).max() < 1e-12
    scores = stored.recal.crps(small.observation, dim="init")
    raw = small.forecast.isel(init=slice(300, None)).recal.crps(small.observation, dim="init")
    assert float(scores.mean()) < float(raw.mean())
