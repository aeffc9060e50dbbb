"""The benchmark of what methods issue on the worst day: all parts at their smallest size."""

import csv

import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.issued import run
from benchmarks.issued.issuing import METHODS, Found, Limit, beyond, outermost
from benchmarks.issued.synthetic import constant_winters, rain, two_models, unlike_forecasts
from benchmarks.speed.tables import Row
from tests.marks import requires_data

COMPARING = ("CKME observations", "CKME errors", "CKME auto", "LinearPool")
REAL = {"sets": "toulouse_tigge_t2m.nc", "units": "toulouse_tigge_t2m.nc", "prices": "epf_de.nc"}
ROWS = {
    "sets": 8, "units": 8, "record": 8, "rain_tails": 1, "seasonal_rain": 1, "winters": 4,
    "prices": 2,
}  # fmt: skip
LIMITS = {"units": 8, "record": 1, "rain_tails": 2, "seasonal_rain": 1, "winters": 8, "prices": 4}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(name, marks=[requires_data(REAL[name])] if name in REAL else [])
        for name in ROWS
    ],
)
def test_part(part):
    (title, found, limits), _ = run.measure(part, quick=True)
    assert title.startswith(f"{part}: ")
    rows = dict(found)
    assert len(rows) == len(found) == ROWS[part]
    assert len(limits) == LIMITS.get(part, 0)
    assert len({tuple(cells) for cells in rows.values()}) == 1
    for name, cells in rows.items():
        told = {column for column, value in cells.items() if value == ""}
        comparing = any(name.endswith(label) for label in COMPARING)
        assert told == ({"physics"} | (set() if comparing else {"novelty", "rank"})
                        if part == "sets" else set())  # fmt: skip
        assert np.isfinite([value for value in cells.values() if value != ""]).all()
    for limit in limits:
        assert np.isfinite(limit.seen)
    CHECKS[part](rows)


def check_sets(rows):
    by_method = {name.split(", ")[1]: cells for name, cells in rows.items()}
    assert tuple(by_method) == tuple(METHODS)
    for label in ("Climatology", "IDR", "CKME observations"):  # members are past observations
        assert by_method[label]["issued"] == pytest.approx(0, abs=1e-12)
        assert by_method[label]["below"] <= 0
        assert by_method[label]["above"] <= 0
    assert by_method["EMOS"]["issued"] > by_method["EMOS"]["far"]
    assert len({cells["seen"] for cells in rows.values()}) == 1
    for cells in rows.values():
        assert 0 <= cells["tail crps"] <= cells["crps"]
    assert by_method["EMOS"]["crps"] < by_method["Climatology"]["crps"]


def check_units(rows):
    assert all(set(cells) == {"K", "°F"} for cells in rows.values())
    assert all(change <= 1e-3 for cells in rows.values() for change in cells.values())


def check_record(rows):
    assert all(p <= 1e-12 for p in rows["Climatology"].values())
    assert all(p >= 0.999 for p in rows["EMOS"].values())
    assert all(p >= 0.97 for p in rows["LinearPool"].values())


def check_rain_tails(rows):
    (cells,) = rows.values()
    assert 0 < cells["true"] < 0.1
    assert cells["mass/true, auto"] == pytest.approx(cells["mass, auto"] / cells["true"])


def check_seasonal_rain(rows):
    (cells,) = rows.values()
    best = min(cells[label] for label in ("raw", "Climatology", "EMOS"))
    assert cells["pool/best"] == pytest.approx(cells["LinearPool"] / best)
    assert cells["raw"] > 2 * cells["Climatology"]


def check_winters(rows):
    assert all(skill < 0.3 for cells in rows.values() for skill in cells.values())


def check_prices(rows):
    assert all(0.5 < cells["pool/raw"] < 2 for cells in rows.values())
    assert all(0 <= cells["pool far"] < 0.1 for cells in rows.values())


CHECKS = {
    "sets": check_sets,
    "units": check_units,
    "record": check_record,
    "rain_tails": check_rain_tails,
    "seasonal_rain": check_seasonal_rain,
    "winters": check_winters,
    "prices": check_prices,
}


def test_limits_hold_or_do_not():
    assert Limit("a", 1.0, 1.0).holds
    assert not Limit("a", 1.0, 1.1).holds
    assert Limit("a", 1.0, 1.1, at_least=True).holds
    assert not Limit("a", 1.0, np.nan).holds
    assert Limit("a", 1.0, 2.0).row.cells == {"limit": "<= 1", "seen": 2.0, "holds": "no"}


def test_a_missed_limit_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(run, "RESULTS", tmp_path / "issued.csv")
    found = Found("a: table", [Row("row", {"figure": 0.5})], [Limit("worst", 1.0, 2.0)])
    monkeypatch.setattr(run, "PARTS", {"a": lambda quick: found})
    run.main(quick=True)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "budget MISSED: 0 of 1 limits hold; missed: worst"
    assert not run.RESULTS.exists()  # of whole runs alone
    with pytest.raises(SystemExit, match="no part b; there are a"):
        run.main(["b"])


def test_stored_limits_are_those_of_all_parts():
    with run.RESULTS.open() as file:
        rows = list(csv.DictReader(file))
    tables = {row["table"].split(":")[0] for row in rows}
    assert tables == {*run.PARTS, "limits"}
    told = {row["row"] for row in rows if row["table"] == "limits"}
    assert {name.split(":")[0] for name in told} == set(LIMITS)
    assert len(told) == sum(LIMITS.values())


def test_mass_on_the_record_is_not_beyond_it():
    ensemble = xr.DataArray([[0.0, 0.0, 1.0, 2.0]], dims=("case", "member"))
    assert beyond(ensemble.recal.exceedance, 0.0, 2.0).item() == 0
    assert beyond(ensemble.recal.exceedance, 0.5, 1.5).item() == pytest.approx(0.75)


def test_outermost_values_have_a_weight():
    members = xr.DataArray([[-9.0, 1.0, 2.0]], dims=("case", "member"))
    issued = xrecal.weighted(members, xr.DataArray([[0.0, 0.5, 0.5]], dims=("case", "member")))
    assert [end.item() for end in outermost(issued)] == [1.0, 2.0]
    normal = xrecal.gaussian(xr.DataArray([0.0], dims="case"), xr.DataArray([1.0], dims="case"))
    low, high = outermost(normal)
    assert low.item() == pytest.approx(-3.719, abs=1e-3)
    assert high.item() == pytest.approx(-low.item())


def test_synthetic_forecasts_are_as_described():
    rng = np.random.default_rng(0)
    hindcast, observed, new = unlike_forecasts(2)
    assert float(observed.max()) < float(new.min())
    assert float((observed - hindcast.mean("member")).mean()) == pytest.approx(1, abs=0.1)
    members, amounts, _ = rain(rng, 2000)
    assert 0.2 < float((amounts == 0).mean()) < 0.6
    assert np.corrcoef(members.mean("member"), amounts)[0, 1] > 0.2
    seasons, rainfall = two_models(rng, 3, 29, np.full(3, 100.0), 0)
    assert float(seasons.std("member").mean()) == pytest.approx(100, rel=0.1)
    assert rainfall.sizes == {"cell": 3, "time": 29}
    winters, anomaly = constant_winters(rng, 200, 1900)
    assert winters["time"].dt.month.isin([12, 1, 2]).all()
    both = [part.values.reshape(200, 18).mean(1) for part in (winters.mean("member"), anomaly)]
    assert abs(np.corrcoef(both)[0, 1]) < 0.2
