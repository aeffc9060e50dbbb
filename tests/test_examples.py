"""The examples run and print the expected figures; the README shows the table of the demo."""

import re
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
    for coherence in ("ecc", "schaake"):
        assert energy[coherence] < energy["raw"]
    # Ten dates are few, so their score depends on the draw.
    data = example.open_data("cesm_dple_epacific_lagged.nc")
    draws = [
        example.held_out_members(data.forecast, data.observation, seed=seed)["dates"]
        for seed in range(6)
    ]
    of_draws = example.scores(dict(enumerate(draws)), data.observation)["energy score"]
    assert of_draws.mean() < energy["raw"]
    assert table.CRPS["ecc"] == pytest.approx(table.CRPS["no coherence"], rel=1e-6)
    assert "variogram score" in capsys.readouterr().out
    assert (tmp_path / "demo" / "fields.png").stat().st_size > 10_000


@pytest.mark.parametrize("example", ["readme_figure"], indirect=True)
def test_readme_figure(example, tmp_path, capsys):
    import matplotlib as mpl

    mpl.use("agg")
    figure = example.main(tmp_path / "new" / "readme.png")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert "raw ensemble: CRPS 0.680" in titles
    assert "recalibrated: CRPS 0.590" in titles
    assert (tmp_path / "new" / "readme.png").stat().st_size > 50_000


@requires_data("innsbruck_gefs.nc")
@pytest.mark.parametrize("example", ["joint_variables"], indirect=True)
def test_joint_variables_on_few_dates(example, monkeypatch, capsys):
    whole = example.open_data
    few = {"time": slice(None, None, 3)}
    monkeypatch.setattr(example, "open_data", lambda name: whole(name).isel(few))
    table = example.main()
    energy = table["energy score"]
    assert energy["joint"] < energy["marginal, ecc"] < energy["marginal"] < energy["raw"]
    assert table["CRPS temperature (K)"]["joint"] < table["CRPS temperature (K)"]["raw"]
    assert "jointly with rain" in capsys.readouterr().out


@pytest.mark.slow
@requires_data("innsbruck_gefs.nc")
@pytest.mark.parametrize("example", ["joint_variables"], indirect=True)
def test_joint_variables(example, capsys):
    table = example.main()
    energy = table["energy score"]
    assert energy["raw"] == pytest.approx(1.436, abs=5e-4)
    assert energy["joint"] < energy["marginal, ecc"] < energy["marginal"]
    assert energy["joint, all weights"] < energy["marginal of errors, ecc"]
    assert table["CRPS temperature (K)"]["joint"] == pytest.approx(1.266, rel=0.01)
    assert "jointly with rain" in capsys.readouterr().out


@requires_data("gmao_mjo_rmm1.nc", "glofas_discharge.nc")
@pytest.mark.parametrize("example", ["multi_lead"], indirect=True)
def test_multi_lead_at_one_lead(example, monkeypatch, capsys):
    whole = example.open_data

    def few(name):
        data = whole(name).isel(lead=slice(-3, None))
        return data.isel(station=[0]) if "station" in data.dims else data

    monkeypatch.setattr(example, "open_data", few)
    tables = example.main({"MJO RMM1": [44], "GloFAS discharge": [720]})
    assert capsys.readouterr().out.count("CKME is worse than raw at no lead") == 2
    for table in tables.values():
        table = table.transpose("method", "lead", ...)
        assert (table[1:] < table[0]).all()


@pytest.mark.slow
@requires_data("gmao_mjo_rmm1.nc", "glofas_discharge.nc")
@pytest.mark.parametrize("example", ["multi_lead"], indirect=True)
def test_multi_lead(example, capsys):
    few = {"MJO RMM1": [0, 20, 44], "GloFAS discharge": [24, 144, 720]}
    tables = example.main(few)
    printed = capsys.readouterr().out
    assert "leads            3 (lead 0 to 44 d), 298 to 306 of 306 pairs each" in printed
    assert "leads            3 (lead 24 to 720 h), 310 to 312 of 312 pairs each" in printed
    mjo, glofas = (table.transpose("method", "lead", ...) for table in tables.values())
    assert mjo[0].to_numpy() == pytest.approx([0.339, 0.629, 0.751], abs=5e-4)
    assert (mjo[1:] < 0.9 * mjo[0]).all()
    assert glofas[0].mean("station").to_numpy() == pytest.approx([3.593, 20.579, 50.129], abs=5e-4)
    assert (glofas[1:].mean("station") < glofas[0].mean("station")).all()
    assert (glofas[2:, 1:] < glofas[0, 1:]).all()
    assert "CKME is worse than raw at no lead\n  G0518: at 24\n" in printed


@pytest.mark.parametrize("example", ["lorenz96"], indirect=True)
def test_lorenz96(example, tmp_path, monkeypatch, capsys):
    import matplotlib as mpl
    import xarray as xr

    import xrecal

    mpl.use("agg")
    small = xrecal.datasets.lorenz96(n_inits=350, n_locations=4, lead_days=(5, 10))
    small = small.isel(location=[0, 2])
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


@pytest.mark.slow
@pytest.mark.parametrize("example", ["lorenz96"], indirect=True)
def test_the_readme_shows_the_table_of_the_demo(example, tmp_path, capsys):
    import matplotlib as mpl

    mpl.use("agg")
    example.main(tmp_path)
    printed = capsys.readouterr().out.splitlines()
    readme = (EXAMPLES.parent / "README.md").read_text()
    shown = re.search(r"`make demo`.*?```\n(.*?)\n```", readme, re.DOTALL)
    *table, n_cases, dependence = shown[1].splitlines()
    first = next(i for i, line in enumerate(printed) if "CRPS" in line)
    found = printed[first : first + len(table)]
    assert [row.split()[:-1] for row in table] == [row.split()[:-1] for row in found]  # no seconds
    assert [n_cases, dependence] == printed[first + len(table) :][:2]


@pytest.mark.parametrize("example", ["gpu_cluster"], indirect=True)
def test_gpu_cluster(example, capsys):
    found, printed = example.main(), capsys.readouterr().out
    if example.what_is_missing() is None:
        assert found.sizes["lead"] == printed.count("on the devices")
    else:
        assert found is None
        assert printed.startswith("not run: ")
