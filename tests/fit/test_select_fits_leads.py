"""Forecasts of one lead, or of a part of the leads, get the fits of these."""

from functools import cache

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.inputs.test_valid_time_leads import FIXED, NEW, SEASON, Q, fit, same
from tests.inputs.test_valid_time_lookup import AT_LEADS, HINDCAST, LEADS, OBSERVED
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.pairs import pairwise
from tests.strategies import FORMS
from xrecal.fit.select_fits import match_variables

PARTS = {"one": 1, "a list of one": [1], "some": [0, 2], "another order": [2, 0]}
BY_PLACE = xr.DataArray(
    np.linspace(-1, 1, 6).reshape(3, 2), {"lead": HINDCAST.lead}, ["lead", "lat"]
)
BY_MONTH = xr.DataArray(np.linspace(-1, 1, 12), {"month": np.arange(1, 13)})
ALONE = {  # what needs nothing from other leads: all but coherence="dates"
    "apply": lambda model, new, at: model.apply(new),
    "quantile": lambda model, new, at: model.quantile(new, Q),
    "median": lambda model, new, at: model.quantile(new, 0.5),
    "exceedance": lambda model, new, at: model.exceedance(new, BY_PLACE.isel(lead=at)),
    "by month": lambda model, new, at: model.exceedance(new, BY_MONTH),
    "cdf": lambda model, new, at: model.cdf(new, [0.0, 1.0]),
    "categories": lambda model, new, at: model.categories(new),
    "of the season": lambda model, new, at: model.categories(new, window=60),
    "mean": lambda model, new, at: model.mean(new),
    "std": lambda model, new, at: model.std(new),
    "crps": lambda model, new, at: model.crps(new, OBSERVED),
    "mean crps": lambda model, new, at: model.crps(new, OBSERVED, "init"),
    "crps at leads": lambda model, new, at: model.crps(new, AT_LEADS.isel(lead=at)),
    "pit": lambda model, new, at: model.pit(new, OBSERVED, seed=3),
    "pit at leads": lambda model, new, at: model.pit(new, AT_LEADS.isel(lead=at)),
    "members": lambda model, new, at: model.members(new, 6),
    "ecc": lambda model, new, at: model.members(new, coherence="ecc"),
    "schaake": lambda model, new, at: model.members(new, 7, coherence="schaake"),
}
METHODS = {
    "ckme": FIXED,
    "season": SEASON,
    "errors": xrecal.CKME(ridge=0.05, bandwidth=1.5, support="errors"),
    "emos": xrecal.EMOS(condition_on="season"),
    "idr": xrecal.IDR(),
}


model = cache(lambda method: fit(METHODS[method]))


@cache
def of_all(method, call):
    """What a call makes of forecasts of all leads."""
    return ALONE[call](model(method), NEW, slice(None))


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:only .* of .* have an observation")
@pytest.mark.parametrize(("method", "call", "part"), pairwise(METHODS, ALONE, PARTS))
def test_results_are_those_of_the_whole_forecast(method, call, part):
    at = PARTS[part]
    new = freeze(NEW.isel(lead=at).copy())
    found = ALONE[call](model(method), new, at)
    same(found, of_all(method, call).isel(lead=at))
    assert ("lead" in found.dims) == (part != "one")


@pytest.mark.parametrize("part", PARTS)
def test_dates_are_drawn_by_the_weights_of_the_leads_that_there_are(part):
    at = PARTS[part]
    leads = np.atleast_1d(at)
    alone = fit(forecasts=HINDCAST.isel(lead=leads), observations=AT_LEADS.isel(lead=leads))
    whole = NEW.isel(lead=leads)
    expected = alone.members(whole, 7, coherence="dates")
    found = fit().members(NEW.isel(lead=at), 7, coherence="dates")
    same(found, expected if part != "one" else expected.isel(lead=0))


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:the edges of the categories are those of all positions")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "method",
    [xrecal.EMOS(condition_on="lead"), xrecal.Climatology(window=60), FIXED],
    ids=["lead", "season", "plain"],
)
def test_leads_that_share_a_fit(method, part):
    model, at = fit(method, pool="lead"), PARTS[part]
    new = NEW.isel(lead=at)
    for call in ("apply", "quantile", "mean", "by month", "of the season", "ecc"):
        expected = ALONE[call](model, NEW, slice(None)).isel(lead=at)
        # As forecasts are weighed together, their number makes a difference of rounding.
        xr.testing.assert_allclose(ALONE[call](model, new, at), expected, rtol=1e-12, atol=1e-14)
    found, whole = (model.members(forecast, 6) for forecast in (new, NEW))
    expected = whole.isel(lead=at)  # in another order: a pooled fit knows no places of leads
    np.testing.assert_array_equal(np.sort(found, -1), np.sort(expected, -1))


def test_a_shared_fit_takes_leads_between_those_of_the_hindcast():
    model = fit(xrecal.EMOS(condition_on="lead"), pool="lead")
    between = NEW.isel(lead=1).assign_coords(lead=xr.DataArray(9, attrs={"units": "days"}))
    found = model.quantile(between, Q)
    expected = model.quantile(NEW.isel(lead=[1]).assign_coords(lead=[9]), Q).isel(lead=0)
    np.testing.assert_array_equal(found, expected)
    assert found.lead == 9


def test_windows_of_leads():
    model = fit(pool={"lead": 3})
    for at in PARTS.values():
        same(model.quantile(NEW.isel(lead=at), Q), model.quantile(NEW, Q).isel(lead=at))


# forms, starts and labels -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["weighted", "shared", "quantile", "normal"])
def test_forms(form):
    def made(ensemble):
        return FORMS[form](ensemble.rename(init="time").copy()).rename(time="init")

    model = made(HINDCAST).recal.fit(OBSERVED, FIXED)
    for at in PARTS.values():
        expected = model.quantile(made(NEW), Q).isel(lead=at)
        same(model.quantile(made(NEW).isel(lead=at), Q), expected)


def test_a_single_start():
    model = fit(SEASON)
    for call in ("quantile", "of the season", "crps", "schaake"):
        found = ALONE[call](model, NEW.isel(init=3, lead=1), 1)
        expected = ALONE[call](model, NEW, slice(None)).isel(init=3, lead=1)
        xr.testing.assert_allclose(found, expected, rtol=1e-12)


def test_starts_named_as_the_times_of_observations():
    model = HINDCAST.rename(init="time").recal.fit(OBSERVED, SEASON)
    new = NEW.rename(init="time")
    for at in PARTS.values():
        same(model.crps(new.isel(lead=at), OBSERVED), model.crps(new, OBSERVED).isel(lead=at))


@pytest.mark.parametrize("name", ["valid_time", "time", "when"])
def test_valid_times_of_a_coordinate(name):
    def dated(array):
        later = xr.DataArray([100, 101, 102], dims="lead").astype("m8[D]")
        valid = (array.init + later).assign_attrs(standard_name="time")
        return array.drop_attrs().assign_coords({name: valid})

    model = dated(HINDCAST).recal.fit(AT_LEADS, SEASON)
    bare = HINDCAST.drop_attrs().recal.fit(AT_LEADS, SEASON)  # of the season of the start
    for new in (dated(NEW), dated(NEW).isel(init=4)):
        for at in (1, [2, 0]):
            found = model.quantile(new.isel(lead=at), Q)
            xr.testing.assert_allclose(found, model.quantile(new, Q).isel(lead=at), rtol=1e-12)
            assert name in found.coords
    plain = bare.quantile(NEW.drop_attrs().isel(lead=1), Q)
    assert np.abs(plain - model.quantile(dated(NEW).isel(lead=1), Q)).max() > 1e-3


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_leads_as_lengths_of_time(unit):
    def as_lengths(array, unit="ns"):
        return array.assign_coords(lead=np.array(LEADS, "m8[D]").astype(f"m8[{unit}]"))

    model = fit(SEASON, as_lengths(HINDCAST))
    expected = fit(SEASON).quantile(NEW, Q)
    for at in PARTS.values():
        found = model.quantile(as_lengths(NEW, unit).isel(lead=at), Q)
        np.testing.assert_array_equal(found, expected.isel(lead=at))


def test_units_are_the_same_whatever_their_spelling_and_type():
    new = NEW.assign_coords(lead=("lead", np.array(LEADS, float), {"units": "d"}))
    found = fit(SEASON).quantile(new.isel(lead=[1, 2]), Q)
    np.testing.assert_array_equal(found, fit(SEASON).quantile(NEW, Q).isel(lead=[1, 2]))
    assert found.lead.identical(new.lead[1:])


def test_a_dataset_whose_variables_do_not_all_have_leads():
    def two(array):
        return xr.Dataset({"t2m": array, "index": array.isel(lead=0, drop=True) * 2})

    model = two(HINDCAST).recal.fit(two(AT_LEADS), FIXED)
    for at in PARTS.values():
        new = two(NEW).isel(lead=at)
        same(model.quantile(new, Q), model.quantile(two(NEW), Q).isel(lead=at))
        same(model.apply(new), model.apply(two(NEW)).isel(lead=at))
        found = model.crps(new, two(AT_LEADS).isel(lead=at))
        same(found, model.crps(two(NEW), two(AT_LEADS)).isel(lead=at))


# lazy ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A model in a file, and what it makes of all leads in memory."""
    path, model = tmp_path_factory.mktemp("stored") / "model.zarr", fit(SEASON)
    model.save(path)
    return path, (model.quantile(NEW, Q), model.apply(NEW), model.crps(NEW, OBSERVED))


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("part", "chunks", "cut"),
    pairwise(
        PARTS,
        [{}, {"lead": 1}, {"lead": 2, "lat": 1}],
        [None, {}, {"lat": 1}, {"lead": 2, "init": 5}],
    ),
)
def test_lazy_models_and_forecasts(part, chunks, cut, stored):
    (path, whole), at = stored, PARTS[part]
    with forbid_compute():
        model = xrecal.open_recalibrator(path, chunks=chunks)
        new = (NEW if cut is None else NEW.chunk(cut)).isel(lead=at)
        found = model.quantile(new, Q), model.apply(new), model.crps(new, OBSERVED)
    for one, expected in zip(dask.compute(*found), whole, strict=True):
        xr.testing.assert_allclose(one, expected.isel(lead=at), rtol=1e-12)


def test_results_are_cut_as_the_forecast_is():
    model = fit(EMOS, HINDCAST.chunk(lead=2))
    found = model.quantile(NEW.isel(lead=[0, 2]).chunk(lead=2), Q)
    assert found.chunksizes["lead"] == (2,)


# what is told -------------------------------------------------------------------------------------

EMOS = xrecal.EMOS()


def test_the_fits_tell_of_the_leads_that_there_are():
    observed = OBSERVED.isel(time=slice(None, 470))
    ((_, fitted),) = match_variables(fit(EMOS, observations=observed), NEW[:, [2, 0]]).values()
    assert fitted.leads.labels == ("20", "1")
    whole = fit(EMOS, observations=observed).variables["t2m"].leads.n_matched
    assert whole[0] != whole[2]
    assert fitted.leads.n_matched == (whole[2], whole[0])
    assert fitted.leads.units == "days"
    assert fitted.state.lead.identical(NEW.lead[[2, 0]])
    model = fit(EMOS)
    ((_, same_fit),) = match_variables(model, NEW).values()
    assert same_fit is model.variables["t2m"]


@pytest.mark.parametrize("at", PARTS.values(), ids=PARTS)
def test_plans(at):
    new = NEW.isel(lead=at)
    told = fit(EMOS).plan(new, probe=False)
    (part,) = told.variables
    assert part.locations == 2 * np.size(at)
    new.chunk(part.chunks)


def test_files(tmp_path):
    from tests.cli.files import succeed

    HINDCAST.to_dataset(name="t2m").to_netcdf(tmp_path / "hindcast.nc")
    OBSERVED.to_dataset(name="t2m").to_netcdf(tmp_path / "observed.nc")
    paths = tmp_path / "hindcast.nc", tmp_path / "observed.nc", tmp_path / "model.zarr"
    succeed("fit", *paths, "--method", "emos", "--chunks", "lead=2")
    expected = fit(EMOS).quantile(NEW, [0.1, 0.9])
    for part, at in PARTS.items():
        new, made = (tmp_path / f"{part} {what}.nc" for what in ("new", "made"))
        NEW.isel(lead=at).to_dataset(name="t2m").to_netcdf(new)
        succeed("apply", paths[-1], new, made, "--quantiles", "0.1,0.9")
        with xr.open_dataset(made, decode_timedelta=False) as found:
            xr.testing.assert_allclose(found.t2m, expected.isel(lead=at), rtol=1e-12)


# errors -------------------------------------------------------------------------------------------

HOURS = ("lead", [24, 96, 480], {"units": "hours"})
ERRORS = {
    "unknown": (
        NEW.isel(lead=1).assign_coords(lead=7),
        "forecast has 1 of 1 leads along 'lead' that the model was not fitted on, 7; it was",
    ),
    "which": (
        NEW.isel(lead=1, drop=True),
        r"it lacks \['lead'\]: .* or give the lead of the forecast: "
        r"forecast.assign_coords\(lead=...\)",
    ),
    "twice": (
        NEW.isel(lead=[0, 1, 1]),
        r"'lead' of forecast must be unique, but 4 .* use forecast.drop_duplicates\('lead'\)",
    ),
    "equal numbers of hours": (
        NEW.assign_coords(lead=("lead", LEADS, {"units": "h"})),
        "was not fitted on, 1, 4, 20 h; it was fitted on 1 to 20 days",
    ),
    "months": (
        NEW.assign_coords(lead=("lead", LEADS, {"units": "months"})),
        "along 'lead' are numbers of months in forecast, but numbers of days in the model; "
        r"use the type and unit of model.state\['lead'\] for the leads of forecast",
    ),
    "another place": (NEW.isel(lead=1, lat=[0]), "differ along 'lat': 2 against 1 labels; sel"),
    "no place": (NEW.isel(lead=1, lat=0), r"it lacks \['lat'\]: apply the model to all positions"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    new, message = ERRORS[case]
    model = fit(EMOS)
    with pytest.raises(ValueError, match=message) as error:
        model.quantile(new, Q)
    assert case == "which" or "give the lead of the forecast" not in str(error.value)


@pytest.mark.parametrize(
    "leads",
    [HOURS, np.array(LEADS, "m8[D]").astype("m8[ns]"), np.array(LEADS, "m8[D]").astype("m8[s]")],
)
def test_leads_in_another_unit_get_their_fits(leads):
    model, new = fit(EMOS), NEW.assign_coords(lead=leads)
    expected = model.quantile(NEW, Q)
    found = model.quantile(new, Q)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found["lead"], new["lead"])
    assert found["lead"].attrs == new["lead"].attrs
    np.testing.assert_array_equal(model.quantile(new.isel(lead=1), Q), expected.isel(lead=1))
    np.testing.assert_array_equal(
        model.quantile(new.isel(lead=[2, 0]), Q), expected.isel(lead=[2, 0])
    )


def test_a_shared_fit_that_knows_leads_in_another_unit():
    model = fit(xrecal.EMOS(condition_on="lead"), pool="lead")
    for new in (NEW.assign_coords(lead=HOURS), NEW.assign_coords(lead=HOURS).isel(lead=0)):
        with pytest.raises(ValueError, match=r"numbers of hours .* of model.state\['calibration_"):
            model.quantile(new, Q)
    plain = fit(EMOS, pool="lead")  # to which leads make no difference
    np.testing.assert_array_equal(
        plain.quantile(NEW.assign_coords(lead=HOURS), Q), plain.quantile(NEW, Q)
    )


def test_the_season_of_one_lead_needs_its_unit():
    new = NEW.isel(lead=1).assign_coords(lead=4)
    np.testing.assert_array_equal(
        fit(EMOS).quantile(new, Q), fit(EMOS).quantile(NEW, Q).isel(lead=1)
    )
    for pool in (None, "lead"):
        model = fit(xrecal.Climatology(window=60), pool=pool)
        with pytest.raises(ValueError, match="'lead' of forecast have no units"):
            model.quantile(new, Q)


def test_models_without_labels_of_leads_take_all():
    bare = HINDCAST.drop_vars("lead").recal.fit(AT_LEADS.drop_vars("lead"), EMOS)
    with pytest.raises(ValueError, match="differ along 'lead': 3 against 2 labels"):
        bare.quantile(NEW.drop_vars("lead").isel(lead=[0, 1]), Q)
    with pytest.raises(ValueError, match=r"lacks \['lead'\]: apply the model to all positions"):
        bare.quantile(NEW.isel(lead=1), Q)


def test_updates_need_all_leads():
    later = HINDCAST.assign_coords(init=HINDCAST.init + np.timedelta64(4000, "D"))
    known = AT_LEADS.assign_coords(init=later.init)
    for at in ([0, 1], 1):
        with pytest.raises(ValueError, match=r"differ along 'lead': 3|it lacks \['lead'\]: apply"):
            fit(xrecal.Climatology()).update(later.isel(lead=at), known.isel(lead=at))


def test_comparisons_need_the_lead_as_a_dimension():
    past, new = HINDCAST.isel(lat=0, init=slice(30)), HINDCAST.isel(lat=0, init=slice(30, None))
    observed = OBSERVED.isel(lat=0)
    with pytest.raises(ValueError, match=r"has a single lead.*use forecast.expand_dims\('lead'\)"):
        xrecal.compare(past, observed, [EMOS], forecast=new.isel(lead=1))
    one = xrecal.compare(past, observed, [EMOS], forecast=new.isel(lead=1).expand_dims("lead"))
    whole = xrecal.compare(past, observed, [EMOS], forecast=new)
    xr.testing.assert_allclose(one.crps, whole.crps.isel(lead=[1]))
