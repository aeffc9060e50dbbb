"""The benchmark of what methods issue on the worst day: all parts at their smallest size."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.issued import run
from benchmarks.issued.issuing import METHODS, Limit, beyond, outermost
from tests.marks import requires_data

REAL = {"sets": "toulouse_tigge_t2m.nc", "units": "toulouse_tigge_t2m.nc", "prices": "epf_de.nc"}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(name, marks=[requires_data(REAL[name])] if name in REAL else [])
        for name in run.PARTS
    ],
)
def test_part(part):
    (_, found, limits), _ = run.measure(part, quick=True)
    rows = dict(found)
    assert len(rows) == len(found)
    for cells in rows.values():
        assert np.isfinite([value for value in cells.values() if value != ""]).all()
    assert np.isfinite([limit.seen for limit in limits]).all()
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


def check_hub(rows):
    (cells,) = rows.values()
    assert cells["raw"] == 1
    assert all(0.9 < ratio < 1.2 for ratio in cells.values())


def check_drift(rows):
    assert len(rows) == 4
    assert all(cells["EMOS"] == 1 for cells in rows.values())
    assert all(0.8 < cells["OnlinePool"] < 1.2 for cells in rows.values())


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
    "hub": check_hub,
    "drift": check_drift,
    "prices": check_prices,
}


def test_limits_hold_or_do_not():
    assert Limit("a", 1.0, 1.0).holds
    assert not Limit("a", 1.0, 1.1).holds
    assert Limit("a", 1.0, 1.1, at_least=True).holds
    assert not Limit("a", 1.0, np.nan).holds


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
