"""Names, attributes and coordinates of everything that is made of a forecast."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal

from .strategies import PAPER, ensemble_and_truth, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
HINDCAST = HINDCAST.assign_attrs(history="hindcast made")
NEW = NEW.assign_attrs(
    standard_name="air_temperature", history="forecast made", cell_methods="time: maximum"
).assign_coords(
    valid_time=("time", NEW.time.to_numpy() + np.timedelta64(6, "h"), {"standard_name": "time"}),
    height=((), 2.0, {"units": "m"}),
    area=(("lat", "lon"), np.arange(4.0).reshape(2, 2)),
)
CALLS = {
    "quantile": {"q": [0.1, 0.5]},
    "members": {"n": 3},
    "mean": {},
    "std": {},
    "exceedance": {"threshold": [280.0, 281.0]},
    "cdf": {"threshold": 280.0},
    "categories": {},
}
PROBABILITIES = ("exceedance", "cdf", "categories")


@cache
def fitted():
    return HINDCAST.recal.fit(TRUTH, PAPER)


def made(call, door, forecast=NEW):
    """A product of the forecast itself, or of the recalibrated one."""
    if door == "model":
        return getattr(fitted(), call)(forecast, **CALLS[call])
    options = {"edges": [280.0, 281.0]} if call == "categories" else CALLS[call]
    return getattr(forecast.recal, call)(**options)


@pytest.mark.parametrize("door", ["recal", "model"])
@pytest.mark.parametrize("call", CALLS)
def test_names_units_and_one_line_of_history(call, door):
    found = made(call, door)
    assert found.name == (call if call in PROBABILITIES else "t2m")
    before, line = found.attrs["history"].splitlines()
    assert before == "forecast made"
    assert line.startswith("xrecal: ")
    assert "ancillary_variables" not in found.attrs
    if call in PROBABILITIES:
        assert found.attrs["long_name"].startswith("probability that 2 m temperature ")
        assert set(found.attrs) == {"long_name", "units", "history"}
        assert found.attrs["units"] == "1"
    else:
        assert found.attrs["standard_name"] == "air_temperature"
        assert found.attrs["units"] == "K"


@pytest.mark.parametrize("door", ["recal", "model"])
@pytest.mark.parametrize("call", CALLS)
def test_a_dataset_tells_the_same(call, door):
    dataset = NEW.to_dataset().assign_attrs(history="made", title="forecasts")
    found, alone = made(call, door, dataset), made(call, door)
    assert found.attrs["title"] == "forecasts"
    before, line = found.attrs["history"].splitlines()
    assert before == "made"
    assert line == alone.attrs["history"].splitlines()[1]
    assert list(found.data_vars) == ["t2m"]
    given = {k: v for k, v in alone.attrs.items() if k != "history"}
    assert found["t2m"].attrs == given | {"history": "forecast made"}


@pytest.mark.each_value
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("door", ["recal", "model"])
@pytest.mark.parametrize("call", CALLS)
def test_coordinates_stay(call, door, lazy):
    found = made(call, door, NEW.chunk(lat=1) if lazy else NEW)
    for name in ("time", "lat", "lon", "valid_time", "height", "area"):
        xr.testing.assert_identical(found[name].variable, NEW[name].variable)


@pytest.mark.parametrize("door", ["recal", "model"])
@pytest.mark.parametrize(
    ("call", "method"), [("mean", "mean"), ("std", "standard_deviation"), ("members", None)]
)
def test_moments_have_the_cell_method_of_their_members(call, method, door):
    added = "" if method is None else f" realization: {method}"
    assert made(call, door).attrs["cell_methods"] == f"time: maximum{added}"


def test_cell_methods_name_what_cf_knows():
    """The dimension of the members is gone, so CF has their standard name."""
    forecast = NEW.rename(member="number").drop_attrs()
    assert forecast.recal.mean().attrs["cell_methods"] == "realization: mean"
    assert forecast.recal.quantile(0.5).attrs["cell_methods"] == "realization: median"
    assert "cell_methods" not in forecast.recal.quantile(0.4).attrs
    assert "cell_methods" not in forecast.recal.quantile([0.5]).attrs
    normal = xrecal.gaussian(NEW.mean("member"), NEW.std("member")).drop_attrs()
    assert normal.recal.std().t2m.attrs["cell_methods"] == "realization: standard_deviation"


@pytest.mark.parametrize("door", ["recal", "model"])
def test_quantiles_are_described_by_their_coordinate(door):
    found = made("quantile", door)
    assert found["quantile"].attrs == {"long_name": "quantile", "units": "1"}
    assert found.attrs["cell_methods"] == "time: maximum"
    assert made("quantile", door).isel(quantile=0)["quantile"].attrs["units"] == "1"


@pytest.mark.parametrize("call", CALLS)
def test_of_weighted_ensembles_only_they_name_their_weights(call):
    weighted = xrecal.weighted(NEW, xr.DataArray(np.arange(1.0, 6.0), dims="member"))
    assert weighted.t2m.attrs["ancillary_variables"] == "t2m_weight"
    for door in ("recal", "model"):
        found = made(call, door, weighted)
        assert "ancillary_variables" not in found["t2m"].attrs
        assert list(found.data_vars) == ["t2m"]
    issued = fitted().apply(NEW)
    assert issued.t2m.attrs["ancillary_variables"] == "t2m_weight t2m_novelty"


def test_the_history_of_the_hindcast_is_not_that_of_forecasts():
    found = made("mean", "model", NEW.drop_attrs().assign_attrs(units="K"))
    (line,) = found.attrs["history"].splitlines()
    assert line.startswith("xrecal: mean after recalibration")
    assert found.attrs["long_name"] == "2 m temperature"


@pytest.mark.each_value
@pytest.mark.parametrize("door", ["recal", "model"])
@pytest.mark.parametrize("call", CALLS)
def test_products_survive_a_file(call, door, tmp_path):
    found = made(call, door)
    found.to_netcdf(tmp_path / "product.nc")
    with xr.open_dataarray(tmp_path / "product.nc") as back:
        xr.testing.assert_equal(back, found)
        assert back.attrs == found.attrs


@pytest.mark.parametrize("method", [xrecal.CKME(), xrecal.CKME(support="errors"), xrecal.EMOS()])
def test_a_variable_without_a_long_name_is_given_none(method):
    bare = {"units": "K"}
    model = HINDCAST.drop_attrs().assign_attrs(bare).recal.fit(TRUTH, method)
    issued = model.apply(NEW.drop_attrs().assign_attrs(bare))
    (form,) = [v for name, v in issued.data_vars.items() if name in ("t2m", "t2m_loc")]
    assert "long_name" not in form.attrs
    assert form.attrs["units"] == "K"
    one = issued.isel(lat=0, lon=0).recal.plot.fan()
    assert one.get_ylabel() == "t2m (K)"
    if method == xrecal.CKME():
        told = "observations of the cases used"
        assert model.state.observations.attrs["long_name"] == told
