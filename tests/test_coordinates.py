"""Coordinates of inputs arrive in all that is made of them, with their types, units and attributes.

The calls are those of the interface: a new one without what it needs here fails.
"""

import inspect
from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from xrecal.accessor.recal import DataArrayRecal
from xrecal.model import Recalibrator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of few cases and members
N, M = 48, 4
STARTS = np.datetime64("2001-01-15", "s") + np.arange(N) * np.timedelta64(30, "D")
HOURS = np.array([24, 72])


@cache
def cases(lead):
    """A hindcast whose coordinates have attributes, and observations over starts and leads."""
    rng = np.random.default_rng(0)
    leads = {
        "hours": (HOURS, {"units": "hours", "long_name": "lead"}),
        "lengths": (HOURS.astype("m8[h]").astype("m8[s]"), {"standard_name": "forecast_period"}),
    }
    valid = STARTS[:, np.newaxis] + HOURS * np.timedelta64(1, "h")
    along = "station"
    coords = {
        "init": ("init", STARTS, {"standard_name": "forecast_reference_time", "axis": "T"}),
        "lead": ("lead", *leads[lead]),
        "station": (along, ["a", "b", "c"], {"cf_role": "timeseries_id"}),
        "lat": (along, np.arange(45, 48, dtype="f4"), {"units": "degrees_north", "axis": "Y"}),
        "lon": (along, np.arange(5, 8), {"standard_name": "longitude"}),
        "exposure": (("lead", along), np.arange(6.0).reshape(2, 3), {"units": "km2"}),
        "level": ((), np.int16(2), {"units": "m", "positive": "up"}),
        "month": ("init", np.arange(N, dtype="i4") % 12, {"long_name": "month of the start"}),
        "valid_time": (("init", "lead"), valid, {"standard_name": "time"}),
    }
    signal = 3 * rng.normal(size=(N, 2, 3))
    members = 281 + signal[..., np.newaxis] + 0.6 * rng.normal(size=(N, 2, 3, M))
    attrs = {"units": "K", "long_name": "temperature"}
    dims = ("init", "lead", "station")
    hindcast = xr.DataArray(members, coords, (*dims, "member"), "t2m", attrs)
    truth = xr.DataArray(280 + signal + rng.normal(size=signal.shape), coords, dims, "t2m", attrs)
    return freeze(hindcast), freeze(truth)


@cache
def fitted(lead, support="errors"):
    hindcast, truth = cases(lead)
    return hindcast.recal.fit(truth, xrecal.CKME(support=support))


def methods_of(owner, without):
    names = [n for n in dir(owner) if not n.startswith("_") and callable(getattr(owner, n))]
    return [n for n in names if n not in without]


# Which give a model, a figure, and a covariate with the coordinates of observations.
DOORS = methods_of(DataArrayRecal, {"fit", "report", "known_at"})
VERBS = methods_of(
    Recalibrator,
    {"compute", "persist", "load", "as_numpy", "to_dataset", "save", "plan", "update"},  # models
)
OPTIONS = {
    "energy_score": {"over": "station"},
    "variogram_score": {"over": "station"},
    "skce_test": {"n_resamples": 10},
    "summary": {"n_resamples": 10},
    "monitor": {"restart": None},
    "members": {"n": 3},
    "rpss": {"edges": [279.0, 282.0]},
}
OUTPUTS = {"exceedance": {"threshold": 280.0}, "members": {"n": 3}}
OUTPUTS |= {output: {} for output in ("quantile", "crps", "pit", "categories")}
HELD_OUT = {"block": {"by": "block"}, "updated": {"by": "rolling", "every": 12, "refit": 24}}


def call(function, name, given):
    """A call with what its signature requires."""
    parameters = inspect.signature(function).parameters.values()
    required = [
        p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    return function(**{n: given[n] for n in required} | OPTIONS.get(name, {}))


def assert_arrive(found, hindcast):
    """All coordinates whose dimensions a result has, as they are in the hindcast."""
    whole = found.to_dataset(name="found") if isinstance(found, xr.DataArray) else found
    seen = set()
    for name, given in hindcast.coords.items():
        if not {*given.dims} <= {*whole.dims} or name in {*whole.dims} - {*given.dims}:
            continue
        seen |= {*given.dims}
        arrived = whole.coords[name].transpose(*given.dims)
        assert arrived.dtype == given.dtype, name
        xr.testing.assert_identical(arrived.variable.compute(), given.variable)
    assert seen == {*hindcast.dims} & {*whole.dims} - {"member"}


@pytest.mark.parametrize("lead", ["hours", "lengths"])
@pytest.mark.parametrize("chunks", [{}, {"lead": 1}], ids=str)
@pytest.mark.parametrize(("owner", "name"), [
    *[("recal", name) for name in DOORS], *[("model", name) for name in VERBS]
])  # fmt: skip
@pytest.mark.each_value
def test_every_door_and_verb(owner, name, chunks, lead):
    hindcast, truth = cases(lead)
    forecast = hindcast.chunk(chunks)
    given = {
        "observations": truth,
        "forecast": forecast,
        "model": fitted(lead),
        "threshold": [280.0, 282.0],
        "edges": [279.0, 282.0],
        "q": [0.1, 0.5],
        "n": 3,
    }
    function = getattr(forecast.recal if owner == "recal" else fitted(lead), name)
    assert_arrive(call(function, name, given), hindcast)


@pytest.mark.parametrize("by", HELD_OUT)
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_of_cross_validation(output, by):
    hindcast, truth = cases("hours")
    options = {"output": output, **OUTPUTS[output], **HELD_OUT[by]}
    found = hindcast.chunk(lead=1).recal.cross_validate(truth, xrecal.EMOS(), **options)
    assert_arrive(found, hindcast)


@pytest.mark.parametrize("coherence", ["ecc", "schaake", "dates"])
def test_coherent_members(coherence):
    hindcast, _ = cases("lengths")
    model = fitted("lengths", "observations")
    assert_arrive(model.members(hindcast, M, coherence=coherence), hindcast)


SCORE = cases("hours")[0].recal.crps(cases("hours")[1])
FUNCTIONS = {
    "skill": lambda: xrecal.skill(SCORE, SCORE + 0.1, "init"),
    "adjusted_p_values": lambda: xrecal.diagnostics.adjusted_p_values(
        SCORE.clip(0, 1).assign_attrs(units="1")
    ),
    "gaussian": lambda: xrecal.gaussian(SCORE, SCORE + 0.1),
    "weighted": lambda: xrecal.weighted(cases("hours")[0], xr.DataArray(np.ones(M), dims="member")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_functions(name):
    assert_arrive(FUNCTIONS[name](), cases("hours")[0])


def test_all_diagnostics_are_doors_or_other_functions():
    assert {*xrecal.diagnostics.__all__} <= {*DOORS, *FUNCTIONS}


def test_comparisons():
    hindcast, truth = cases("hours")
    assert_arrive(xrecal.compare(hindcast, truth, [xrecal.EMOS()], by="block"), hindcast)


@pytest.mark.each_value
@pytest.mark.parametrize("pool", [None, {"station": 3}], ids=str)
@pytest.mark.parametrize("file", ["model.nc", "model.zarr"])
def test_models_and_their_files(file, pool, tmp_path):
    hindcast, truth = cases("hours")
    model = hindcast.recal.fit(truth, xrecal.EMOS(), pool=pool)
    model.save(tmp_path / file)
    opened = xrecal.open_recalibrator(tmp_path / file)
    for one in (model, opened, opened.update(hindcast[:5], truth[:5])):
        for name in ("lead", "station", "lat", "lon", "level"):
            assert one.state[name].dtype == hindcast[name].dtype
            xr.testing.assert_identical(one.state[name].variable, hindcast[name].variable)
        assert one.state["calibration_init"].attrs == hindcast["init"].attrs
