"""Warnings of forecasts at another place or lead than the hindcast, or with other values."""

import warnings
from types import MappingProxyType

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from tests.marks import forbid_compute

METHOD = xrecal.CKME(support="observations", ridge=0.1)
HINDCAST = (10 + random("time", "member")).assign_attrs(units="K")
TRUTH = (10 + random("time", seed=1)).assign_attrs(units="K")
NEW = (10 + random("time", "member", seed=2)).assign_attrs(units="K")
HOURS, DAYS = MappingProxyType({"units": "hours"}), MappingProxyType({"units": "days"})
NORTH = MappingProxyType({"units": "degrees_north"})


def at(forecasts, name, label, attrs=None):
    return forecasts.assign_coords({name: ((), label, attrs)})


def pair(name, there, here, attrs=(None, None)):
    """A model and a forecast, with a scalar coordinate each."""
    model = at(HINDCAST, name, there, attrs[0]).recal.fit(TRUTH, METHOD)
    return model, at(NEW, name, here, attrs[1])


DIFFER = {
    "station": (("station", "Innsbruck", "Wien"), "station Innsbruck", "station Wien"),
    "number": (("station_id", 11120, 11035), "station_id 11120", "station_id 11035"),
    "bytes": (("site", b"a", "b"), "site a", "site b"),
    "CF": (
        ("gauge", "Rhine", "Inn", ({"cf_role": "timeseries_id"}, None)),
        "gauge Rhine",
        "gauge Inn",
    ),
    "lat": (("lat", 47.25, 47.5), "lat 47.25", "lat 47.5"),
    "longitude": (("longitude", 179.0, -179.0), "longitude 179.0", "longitude -179.0"),
    "CF units": (("y", 47.25, 47.5, (None, NORTH)), "y 47.25", "y 47.5"),
    "CF name": (("y", 1.0, 2.0, ({"standard_name": "latitude"}, None)), "y 1.0", "y 2.0"),
    "lead": (("lead", 24, 48), "lead 24", "lead 48"),
    "unit": (("lead", 24, 2, (HOURS, DAYS)), "lead 24 hours", "lead 2 days"),
    "length": (
        ("step", np.timedelta64(24, "h"), np.timedelta64(30, "h")),
        "step 1 days",
        "step 1 days 06:00:00",
    ),
    "both": (
        ("lead", np.timedelta64(24, "h"), 25, (None, HOURS)),
        "lead 1 days",
        "lead 25 hours",
    ),
    "CF lead": (
        ("ahead", 1, 2, ({"standard_name": "forecast_period"}, None)),
        "ahead 1",
        "ahead 2",
    ),
}
AGREE = {
    "run": ("run", "hindcast", "operational"),
    "height": ("height", 2.0, 10.0),
    "station": ("station", "Wien", "Wien"),
    "bytes": ("station", b"Wien", "Wien"),
    "number or text": ("station_id", 11120, "11120"),
    "real or whole": ("station_id", 11120.0, 11120),
    "missing": ("station", "Wien", np.nan),
    "single precision": ("lat", 47.26, np.float32(47.26)),
    "step in single precision": ("lon", 359.9, np.float32(3599) * np.float32(0.1)),
    "around the globe": ("lon", 350.0, -10.0),
    "latitude as text": ("lat", 47.25, "47N"),
    "lead": ("lead", 24, 24.0),
    "units": ("lead", 24, 1, (HOURS, DAYS)),
    "length": ("step", np.timedelta64(24, "h"), 1, (None, DAYS)),
    "length or number": ("step", np.timedelta64(24, "h"), 48),
    "calendar": ("lead", 1, 30, ({"units": "months"}, DAYS)),
    "unknown unit": ("lead", 1, 30, ({"units": "moons"}, DAYS)),
}
CALLS = {
    "apply": lambda model, new: model.apply(new),
    "quantile": lambda model, new: model.quantile(new, 0.5),
    "exceedance": lambda model, new: model.exceedance(new, 10.0),
    "categories": lambda model, new: model.categories(new),
    "mean": lambda model, new: model.mean(new),
    "members": lambda model, new: model.members(new, 5),
    "dates": lambda model, new: model.members(new, 5, coherence="dates"),
    "ecc": lambda model, new: model.members(new, coherence="ecc"),
    "crps": lambda model, new: model.crps(new, TRUTH),
    "pit": lambda model, new: model.pit(new, TRUTH),
}


@pytest.mark.parametrize("case", DIFFER)
def test_another_place_or_lead(case):
    given, there, here = DIFFER[case]
    model, new = pair(*given)
    with pytest.warns(UserWarning, match="the model was fitted at ") as caught:
        model.quantile(new, 0.5)
    (told,) = (str(warning.message) for warning in caught)
    assert told == (
        f"the model was fitted at {there}, but forecast is at {here}: does it belong to the model? "
        f"If so, use forecast.drop_vars({given[0]!r}). If not, use a model fitted to a hindcast "
        "there"
    )
    model.quantile(new.drop_vars(given[0]), 0.5)


@pytest.mark.parametrize("case", AGREE)
def test_what_is_the_same_or_names_no_place(case):
    model, new = pair(*AGREE[case])
    assert model.quantile(new, 0.5).notnull().all()  # and warnings are errors here


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_call_tells_once_and_where_it_was_made(call):
    model, new = pair("station", "Innsbruck", "Wien")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(model, new)
    assert [str(w.message)[:42] for w in caught] == ["the model was fitted at station Innsbruck,"]
    assert caught[0].filename == __file__


def test_several_coordinates_and_variables_are_one_warning():
    labels = {"station": "Innsbruck", "lat": 47.26, "run": "a"}, {"station": "Wien", "lat": 48.2}
    hindcast = xr.Dataset({"a": HINDCAST, "b": HINDCAST}).assign_coords(labels[0])
    model = hindcast.recal.fit(xr.Dataset({"a": TRUTH, "b": TRUTH}), METHOD)
    with pytest.warns(UserWarning, match="the model was fitted at ") as caught:
        model.apply(xr.Dataset({"a": NEW, "b": NEW}).assign_coords(labels[1]))
    assert len(caught) == 1
    assert "station Innsbruck, lat 47.26, but forecast is at station Wien, lat 48.2:" in str(
        caught[0].message
    )
    assert "forecast.drop_vars(['station', 'lat'])" in str(caught[0].message)


def test_updates_tell_of_the_hindcast():
    model, _ = pair("station", "Innsbruck", "Wien")
    later = {"time": HINDCAST.time + np.timedelta64(90, "D")}
    more, theirs = at(NEW, "station", "Wien").assign_coords(later), TRUTH.assign_coords(later)
    with pytest.warns(UserWarning, match=r"but hindcast is at station Wien.*hindcast.drop_vars\("):
        model.update(more, theirs)


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_stored_models_remember(tmp_path, suffix):
    model, new = pair("lead", np.timedelta64(24, "h"), np.timedelta64(48, "h"))
    path = tmp_path / f"model.{suffix}"
    model.save(path)
    with pytest.warns(UserWarning, match="fitted at lead 1 days, but forecast is at lead 2 days:"):
        xrecal.open_recalibrator(path).mean(new)


def test_lazy_inputs_are_told_of_without_computing():
    model = at(HINDCAST, "station", "a").chunk().recal.fit(TRUTH, METHOD)
    with forbid_compute(), pytest.warns(UserWarning, match="fitted at station a, but forecast"):
        model.quantile(at(NEW, "station", "b").chunk(), 0.5)


# values -------------------------------------------------------------------------------------------

FAR = "far from the hindcast that the model was fitted on"
OTHERS = {
    "pool": xrecal.LinearPool((METHOD, xrecal.EMOS())),
    "errors": xrecal.CKME(ridge=0.1, support="errors"),
}
GRID = random("time", "lat", "member") + xr.DataArray([0.0, 40.0, 80.0], dims="lat")
GRID_TRUTH = random("time", "lat", seed=1) + xr.DataArray([0.0, 40.0, 80.0], dims="lat")


@pytest.fixture(scope="module")
def model():
    return HINDCAST.recal.fit(TRUTH, METHOD)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.* unlike all:UserWarning")
@pytest.mark.parametrize("shift", [-273.15, 273.15])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_far_values(model, call, shift):
    new = (NEW + shift).assign_attrs(units="K")
    with pytest.warns(UserWarning, match=FAR) as caught:
        call(model, new)
    low, high = (f"{float(end):.4g}" for end in (new.min(), new.max()))
    learned = f"{float(HINDCAST.min()):.4g} to {float(HINDCAST.max()):.4g} K"
    told = [str(w.message) for w in caught if "unlike all" not in str(w.message)]
    assert told == [
        f"t2m of the forecast is between {low} and {high}, {FAR}, {learned}: is it in another "
        "unit, whatever its attribute units says, or another variable? Give it in the unit of the "
        "hindcast"
    ]


def test_the_limit_is_the_width_of_the_range(model):
    width = HINDCAST.max() - HINDCAST.min()
    for flat, away in ((HINDCAST.max() + width, 1e-6), (HINDCAST.min() - width, -1e-6)):
        new = (NEW * 0 + flat).assign_attrs(units="K")
        model.mean(new - away)
        with pytest.warns(UserWarning, match=FAR):
            model.mean(new + away)
        model.mean(xr.concat([new + away, NEW], "member"))  # one of them is near


def test_ranges_are_of_all_locations_together():
    model = GRID.recal.fit(GRID_TRUTH, METHOD)
    model.mean(GRID.isel(lat=[2, 1, 0]).drop_vars("lat", errors="ignore"))
    with pytest.warns(UserWarning, match=FAR):
        model.mean(GRID + 300)


@pytest.mark.parametrize("method", OTHERS.values(), ids=OTHERS)
def test_methods_that_keep_the_hindcast(method):
    model = HINDCAST.recal.fit(TRUTH, method)
    with pytest.warns(UserWarning, match=FAR):
        model.mean((NEW + 99).assign_attrs(units="K"))


def test_normal_distributions_by_their_locations():
    def normal(forecasts, times=1):
        loc = forecasts.mean("member", keep_attrs=True)
        return xrecal.gaussian(loc, times * forecasts.std("member", keep_attrs=True))

    model = normal(HINDCAST).recal.fit(TRUTH, METHOD)
    model.mean(normal(NEW, times=1e3))
    with pytest.warns(UserWarning, match=FAR):
        model.mean(normal((NEW + 99).assign_attrs(units="K")))


def test_missing_values_do_not_count(model):
    holes = HINDCAST.copy()
    holes[3, 2], holes[4] = np.nan, np.nan
    with pytest.warns(UserWarning, match=FAR):
        holes.recal.fit(TRUTH, METHOD).mean((holes + 99).assign_attrs(units="K"))
    model.mean(NEW * np.nan)
    model.mean(NEW.isel(time=slice(0)))


def test_no_range_no_warning():
    flat = (HINDCAST * 0 + 3).assign_attrs(units="K")
    assert flat.recal.fit(TRUTH, METHOD).mean(NEW + 99).notnull().all()
    assert (HINDCAST * np.nan).recal.fit(TRUTH, METHOD).mean(NEW + 99).isnull().all()


def test_directions_have_none():
    angles = (10 * (HINDCAST - 10) % 360).assign_attrs(units="degrees", circular_period=360.0)
    truth = (10 * (TRUTH - 10) % 360).assign_attrs(units="degrees")
    narrow = (angles / 100).assign_attrs(angles.attrs)
    issued = narrow.recal.fit(truth).mean((narrow + 180).assign_attrs(angles.attrs))
    assert ((issued >= 0) & (issued <= 360)).all()


def test_vectors_each_by_its_own_range():
    past = xr.Dataset({"u": HINDCAST, "v": HINDCAST + 50})
    observed = xr.Dataset({"u": TRUTH, "v": TRUTH + 50})
    model = past.recal.fit(observed, METHOD, jointly=("u", "v"))
    new = xr.Dataset({"u": NEW, "v": NEW + 50})
    model.mean(new)
    with pytest.warns(UserWarning, match=f"v of the forecast is between .*{FAR}") as caught:
        model.mean(new.assign(v=new.v + 99))
    assert len(caught) == 1


def test_lazy_ones_are_not_read(model):
    far = NEW + 99
    lazy = HINDCAST.chunk().recal.fit(TRUTH, METHOD)
    with forbid_compute():
        model.quantile(far.chunk(), 0.5)
        lazy.quantile(far, 0.5)


def test_plans_read_no_values(model):
    far, near = (model.plan(new, probe=False) for new in (NEW + 99, NEW))
    assert (far.variables, far.notes) == (near.variables, near.notes)


def test_methods_that_keep_no_hindcast_say_nothing():
    issued = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).mean((NEW + 99).assign_attrs(units="K"))
    assert issued.notnull().all()
