"""The daily cycle: what each morning leaves, and what becomes of what does not come in time."""

import json
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.processes import python
from xrecal.runs.outcome import stem_of

from .cycle_kills import tree
from .days import FORECASTS, LEARNED, STARTS, TRUTH, first_fit, write
from .files import run

Q = [0.1, 0.5, 0.9]
DAY = LEARNED - 1
"""The first morning."""


def stem(day):
    return stem_of(STARTS[day])


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A cycle of two mornings."""
    days = first_fit(tmp_path_factory.mktemp("begun"))
    for day in (DAY, DAY + 1):
        assert days.morning(day).code == 0
    return days


@pytest.fixture
def days(begun, tmp_path):
    """The same, to go on with."""
    folder = tmp_path / "days"
    shutil.copytree(begun.folder, folder)
    return begun._replace(
        **{name: folder / getattr(begun, name).name for name in begun._fields[1:]}, folder=folder
    )


def opened(days, day):
    with xr.open_dataset(days.output / "forecasts" / f"{stem(day)}.nc") as issued:
        return issued.load()


def scores(days):
    with xr.open_dataset(days.output / "scores.nc") as found:
        return found.load()


VALID = (FORECASTS["init"] + FORECASTS["lead"].astype("timedelta64[D]")).drop_attrs()
OBSERVED = xr.DataArray(
    TRUTH.sel(time=VALID.to_numpy().ravel()).to_numpy().reshape(FORECASTS.shape[:-1]),
    FORECASTS.isel(member=0, drop=True).coords,
    FORECASTS.dims[:-1],
    attrs=TRUTH.attrs,
)


def by_hand(days, day, observed=OBSERVED):
    """The loop: before each start the model learns what has verified, start by start."""
    model = xrecal.open_recalibrator(days.model)
    for one in range(DAY, day + 1):
        seen = observed.where(STARTS[one] >= VALID)
        new = slice(one - 5, one)
        model = model.update(FORECASTS[new], seen[new])
    return model


def test_mornings_are_the_loop_of_update_and_apply(days):
    done = days.morning(DAY + 2)
    assert done.code == 0
    assert done.data["issued"] == [stem(DAY + 2)]
    assert (done.data["learned"], done.data["revised"], done.data["scored"]) == (4, 0, 2)
    assert done.data["model"].endswith(f"out/models/{stem(DAY + 2)}.nc")
    for day in (DAY, DAY + 2):
        model, forecast = by_hand(days, day), FORECASTS[[day]]
        issued = opened(days, day)["t2m"]
        np.testing.assert_array_equal(issued, model.quantile(forecast, Q).transpose(*issued.dims))
        kept = xrecal.open_recalibrator(days.output / "models" / f"{stem(day)}.nc")
        xr.testing.assert_identical(kept.state["observations"], model.state["observations"])
    found = scores(days)
    np.testing.assert_array_equal(found["init"], STARTS[DAY : DAY + 2])
    of_first = by_hand(days, DAY).crps(FORECASTS[[DAY]], OBSERVED)
    np.testing.assert_array_equal(found["t2m_crps"][0, 0], of_first[0, 0])
    raw = FORECASTS[[DAY]].recal.crps(OBSERVED)
    np.testing.assert_array_equal(found["t2m_crps_raw"][0, 0], raw[0, 0])
    assert found["t2m_crps"][:, 1].isnull().all()  # the lead of three days
    assert done.data["scores"]["t2m"] == {
        "crps": pytest.approx(float(found["t2m_crps"][1].mean()), rel=1e-12),
        "crps_raw": pytest.approx(float(found["t2m_crps_raw"][1].mean()), rel=1e-12),
        "units": "K",
        "n": 2,
        "in_all": {
            "crps": pytest.approx(float(found["t2m_crps"].mean()), rel=1e-12),
            "crps_raw": pytest.approx(float(found["t2m_crps_raw"].mean()), rel=1e-12),
            "n": 4,
        },
    }


def test_late_missing_and_revised_observations(days):
    there = TRUTH.copy()
    there.loc[{"time": STARTS[DAY + 2], "place": 0}] = np.nan
    done = days.morning(DAY + 2, truth=there)
    assert (done.code, done.data["learned"], done.data["scored"]) == (0, 2, 1)
    first = tree(days.output / "forecasts")
    assert scores(days)["t2m_crps"].sel(init=STARTS[DAY + 1], lead=1).isnull().sum() == 1
    # It comes a day late, and the station corrects what it said of the day before.
    there = TRUTH.copy()
    there.loc[{"time": STARTS[DAY + 1], "place": 1}] += 1.5
    done = days.morning(DAY + 3, truth=there)
    assert (done.code, done.data["learned"], done.data["revised"]) == (0, 6, 2)
    after = tree(days.output / "forecasts")
    assert {name: after[name] for name in first} == first
    observed = OBSERVED.where((STARTS[DAY + 1] != VALID) | (OBSERVED["place"] != 1), OBSERVED + 1.5)
    kept = xrecal.open_recalibrator(days.output / "models" / f"{stem(DAY + 3)}.nc")
    expected = by_hand(days, DAY + 3, observed).state["observations"]
    xr.testing.assert_identical(kept.state["observations"], expected)
    found = scores(days).sel(init=STARTS[DAY], lead=1)
    np.testing.assert_array_equal(found["t2m_observation"], observed.sel(init=STARTS[DAY], lead=1))
    assert days.morning(DAY + 3, truth=there).code == 11


def test_a_number_that_often_marks_missing_values_is_reported_until_it_is_gone(days):
    there = TRUTH.copy()
    there.loc[{"time": STARTS[DAY + 1], "place": 0}] = -9999.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = days.morning(DAY + 2, truth=there)
    assert done.code == 10
    assert done.data["doubtful"] == {"t2m": {"-9999": 2}}  # of two starts
    (text,) = [note for note in done.data["notes"] if "-9999" in note]
    assert "far from all other values" in text
    assert text in (days.output / "status.txt").read_text()
    back = days.morning(DAY + 3, "--model-at", STARTS[DAY])
    assert (back.code, back.data["doubtful"]) == (0, {})
    kept = xrecal.open_recalibrator(back.data["model"])
    xr.testing.assert_identical(
        kept.state["observations"], by_hand(days, DAY + 3).state["observations"]
    )


def test_observations_of_the_future_are_not_used(begun, days):
    days.hand_over(DAY + 2, truth=TRUTH)
    write(TRUTH.sel(time=slice(None, STARTS[DAY + 4])), days.observations)
    done = run(*days.args(STARTS[DAY + 2]))
    assert done.data["of_the_future"] == 6  # of two days at two places, of one start or two
    told = "observations have future dates: the latest date is 2020-02-13T00:00:00, and now is 2020"
    assert f"6 {told}" in done.err
    assert "check their dates and --now" in done.err
    assert done.code == 0
    used = tree(days.output)
    shutil.rmtree(days.output)
    shutil.copytree(begun.output, days.output)
    assert days.morning(DAY + 2).code == 0
    assert tree(days.output) == used


@pytest.mark.slow
def test_models_are_kept_and_one_can_go_back(days):
    wrong = TRUTH.copy()
    wrong.loc[{"time": STARTS[DAY + 2]}] += 40.0
    for day in (DAY + 2, DAY + 3):
        days.morning(day, "--keep", 3, truth=wrong)
    models = [path.stem for path in sorted((days.output / "models").iterdir())]
    assert models == [stem(day) for day in range(DAY + 1, DAY + 4)]
    assert json.loads((days.output / "status.json").read_text())["models"] == models
    back = days.morning(DAY + 4, "--keep", 3, "--model-at", STARTS[DAY + 1])
    assert back.data["issued"] == [stem(DAY + 4)]
    kept = xrecal.open_recalibrator(back.data["model"])
    expected = by_hand(days, DAY + 4).state["observations"]
    xr.testing.assert_identical(kept.state["observations"], expected)
    refused = days.morning(DAY + 4, "--model-at", "2019-01-01")
    assert refused.code == 3
    assert (
        "no model of 2019-01-01T00:00:00 or before is kept (the folder has models from"
        in refused.err
    )


@pytest.mark.slow
def test_another_fit_takes_over(days):
    seen = OBSERVED.where(STARTS[DAY + 1] >= VALID)
    FORECASTS[: DAY + 1].recal.fit(seen[: DAY + 1], xrecal.Climatology()).save(
        days.model, overwrite=True
    )
    days.morning(DAY + 2)
    kept = xrecal.open_recalibrator(days.output / "models" / f"{stem(DAY + 2)}.nc")
    assert kept.method == xrecal.Climatology()
    days.morning(DAY + 3)
    kept = xrecal.open_recalibrator(days.output / "models" / f"{stem(DAY + 3)}.nc")
    assert kept.method == xrecal.Climatology()
    assert kept.state.sizes["calibration"] == DAY + 3


def test_alarms(days):
    done = days.morning(
        DAY + 4, "--alpha", 0.2, "--run-length", 3, "--restart", "never", truth=TRUTH + 8
    )
    assert done.code == 10
    assert done.data["exit_code"] == 10
    assert done.data["alarms"] > 0
    with xr.open_dataset(days.output / "monitor.nc") as seen:
        assert int(seen["t2m_alarm"].isel(init=-1).sum()) == done.data["alarms"]
        assert int(seen["t2m_change"].sum()) == done.data["changes"]
        pit = scores(days)["t2m_pit"]
        first = pit.sel(lead=1).transpose("place", "init").to_numpy().clip(2.0**-53, 1 - 2.0**-53)
        n = np.zeros(first.shape[1], int)
        e_values = xrecal.arrays.calibration_e_values(first[:, np.newaxis], np.ones(2, int), n)
        found = seen["t2m_e_value"].sel(lead=1).transpose("place", "init")
        np.testing.assert_allclose(found, e_values, rtol=1e-6)


@pytest.mark.slow
def test_files_of_days_and_patterns(days):
    for day in range(DAY - 4, DAY + 3):
        one = FORECASTS[day] if day % 2 else FORECASTS[[day]]
        write(one, days.folder / f"forecast-{day}.nc")
    for day in range(DAY - 6, DAY + 3):
        write(TRUTH.sel(time=[STARTS[day]]), days.folder / f"observed-{day}.nc")
    args = days.args(STARTS[DAY + 2])
    args[args.index("--forecasts") + 1] = days.folder / "forecast-*.nc"
    args[args.index("--observations") + 1] = days.folder / "observed-*.nc"
    assert run(*args).code == 0
    expected = by_hand(days, DAY + 2).quantile(FORECASTS[[DAY + 2]], Q)
    issued = opened(days, DAY + 2)["t2m"]
    np.testing.assert_array_equal(issued, expected.transpose(*issued.dims))
    shutil.copy(days.folder / "forecast-40.nc", days.folder / "forecast-99.nc")
    assert "2020-02-10 00:00:00 occurs in the forecasts twice" in run(*args).err
    args[args.index("--forecasts") + 1] = days.folder / "none-*.nc"
    assert "no forecasts match" in run(*args).err


def refused(done, text):
    assert done.code == 3, done.err
    assert text in done.err


def test_refusals(days):
    refused(days._replace(output=days.model).morning(DAY), "is a file; give an existing")
    assert run(*days.args("yesterday")).code == 2


IN_CELSIUS = (FORECASTS - 273.15).assign_attrs(units="degC")
IN_WEEKS = FORECASTS.assign_coords(lead=("lead", [1, 3], {"units": "weeks"}))
ODD = {
    "day-41.nc['t2m'] is in degC; if the values are converted": IN_CELSIUS,
    "day-41.nc['lead'] is in weeks": IN_WEEKS,
    "day-41.nc does not match": FORECASTS.isel(place=[0]),
    "day-41.nc has 'place' of size 1, and ... has 2; write both in the same way": FORECASTS.isel(
        place=[0]
    ),
    "day-41.nc has 'place' at [5], and ... has [1];": FORECASTS.assign_coords(place=[0, 5]),
    "day-41.nc has 't2m' along ['init', 'member', 'place', 'step'], and ... has ['init', 'lead', "
    "'member', 'place']": FORECASTS.rename(lead="step"),
    "day-41.nc has the variables ['tas'], and ... has ['t2m'];": FORECASTS.rename("tas"),
}


def in_files(days, odd, day=DAY + 2):
    """Arguments with a file for each day, one of them with other forecasts."""
    for one in range(day - 5, day + 1):
        given = odd if one == day else FORECASTS
        given[[one]].to_dataset().drop_encoding().to_netcdf(days.folder / f"day-{one}.nc")
    days.hand_over(day)
    args = days.args(STARTS[day])
    args[args.index("--forecasts") + 1] = days.folder / "day-*.nc"
    return args


@pytest.mark.parametrize("text", ODD)
def test_a_file_that_does_not_fit_to_the_others_is_named(days, text):
    done = run(*in_files(days, ODD[text]))
    for part in text.split("..."):  # the path of another file
        refused(done, part)


def test_observations_in_another_unit_are_refused(days):
    days.hand_over(DAY + 2)
    kelvin, celsius = TRUTH.sel(time=STARTS[:30]), TRUTH.sel(time=STARTS[30 : DAY + 3]) - 273.15
    write(kelvin, days.folder / "a.nc")
    write(celsius.assign_attrs(units="degC"), days.folder / "b.nc")
    args = days.args(STARTS[DAY + 2], "--observations", days.folder / "b.nc")
    args[args.index("--observations") + 1] = days.folder / "a.nc"
    refused(run(*args), "b.nc['t2m'] is in degC; if the values are converted already")


def test_a_file_without_forecasts_is_named(days):
    args = in_files(days, FORECASTS)
    xr.Dataset().to_netcdf(days.folder / "day-41.nc")
    refused(run(*args), "day-41.nc: no variable of forecast is a forecast")


@pytest.mark.parametrize("labels", [None, range(5)])
def test_files_with_fewer_members_are_taken(days, labels):
    whole = FORECASTS if labels is None else FORECASTS.assign_coords(member=labels)
    done = run(*in_files(days, whole.isel(member=slice(3))))
    assert (done.code, done.data["issued"], done.err) == (0, [stem(DAY + 2)], "")
    few = FORECASTS[[DAY + 2]].isel(member=slice(3))
    expected = by_hand(days, DAY + 2).quantile(few, Q)
    issued = opened(days, DAY + 2)["t2m"]
    np.testing.assert_array_equal(issued, expected.transpose(*issued.dims))


def test_a_start_without_members_is_learned_once(days):
    forecasts = FORECASTS.where(FORECASTS["init"] != STARTS[DAY])
    learned = [
        days.morning(day, forecasts=forecasts).data["learned"] for day in range(DAY + 2, DAY + 6)
    ]
    assert learned == [4, 2, 4, 4]  # without lead 3 of that start


def test_a_lead_beside_the_dimensions(tmp_path):
    days = first_fit(tmp_path)
    single = FORECASTS.isel(lead=0)
    past = slice(0, LEARNED - 2)
    single[past].recal.fit(TRUTH, xrecal.EMOS()).save(days.model, overwrite=True)
    for day in (DAY, DAY + 1):
        done = days.morning(day, forecasts=single)
        assert done.code == 0, done.err
    assert (done.data["learned"], done.data["scored"]) == (2, 2)
    issued = opened(days, DAY + 1)
    np.testing.assert_array_equal(issued["valid_time"], STARTS[[DAY + 2]])
    model = single[past].recal.fit(TRUTH, xrecal.EMOS())
    model = model.update(single[LEARNED - 2 : DAY + 1], TRUTH)
    expected = model.quantile(single[[DAY + 1]], Q)
    found = issued["t2m"].transpose(*expected.dims)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("layout", [8, 99])
def test_a_model_of_another_version(days, layout):
    import netCDF4

    for path in (days.output / "models" / f"{stem(DAY + 1)}.nc", days.model):
        with netCDF4.Dataset(path, "a") as file:
            file.xrecal_schema = np.int64(layout)
        done = days.morning(DAY + 2)
        refused(done, f"has the layout {layout}, written by")
    assert "fit and save the model again" in done.err
    assert "or install the version of xrecal that wrote it" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [xrecal.CKME(support="errors"), xrecal.LinearPool((xrecal.EMOS(), xrecal.Raw()))]
)
def test_stores_and_other_methods(tmp_path, method):
    days = first_fit(tmp_path, method, ".zarr")
    for day in (DAY, DAY + 1):
        assert days.morning(day).code == 0
    issued = opened(days, DAY + 1)["t2m"]
    model = by_hand(days, DAY + 1)
    expected = model.quantile(FORECASTS[[DAY + 1]], Q).transpose(*issued.dims)
    np.testing.assert_allclose(issued, expected, rtol=1e-12)
    assert (days.output / "models" / f"{stem(DAY)}.zarr").is_dir()


ONE = FORECASTS.isel(lead=1, drop=True)
VALID_OF_ONE = VALID.isel(lead=1, drop=True)
TWO = xr.Dataset({"t2m": FORECASTS, "u": 2 * FORECASTS})
OF_TWO = xr.Dataset({"t2m": OBSERVED, "u": 2 * OBSERVED})
VARIANTS = {
    "single lead": (
        ONE.assign_coords(valid_time=VALID_OF_ONE), OBSERVED.isel(lead=1, drop=True), {}
    ),
    "no lead": (ONE, TRUTH.rename(time="init"), {}),
    "pooled": (FORECASTS, OBSERVED, {"pool": ("place", "lead")}),
    "one observation for all places": (FORECASTS, OBSERVED.isel(place=0, drop=True), {}),
    "online pool": (FORECASTS, OBSERVED, {"method": xrecal.OnlinePool((xrecal.EMOS(),))}),
    "normal": (
        xrecal.gaussian(FORECASTS.mean("member", keep_attrs=True), FORECASTS.std("member")),
        OBSERVED, {"method": xrecal.PITRecalibration()},
    ),
    "joint": (
        TWO, OF_TWO, {"jointly": ("t2m", "u"), "method": xrecal.CKME(support="observations")}
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:less than half", "ignore:.*states no unit")
@pytest.mark.parametrize("variant", VARIANTS)
def test_forecasts_of_every_kind(tmp_path, variant):
    """What is issued is what the loop issues, of models that know what had verified."""
    forecasts, observed, options = VARIANTS[variant]
    starts = forecasts["init"]
    valid = {"no lead": starts, "single lead": VALID_OF_ONE}.get(variant, VALID)
    options = {"method": xrecal.EMOS(), **options}
    seen = observed.where((starts < STARTS[DAY]) & (valid <= STARTS[DAY]))
    model = forecasts.isel(init=slice(0, DAY)).recal.fit(seen, **options)
    model.save(tmp_path / "model.nc")
    handed = truth = TRUTH if variant != "joint" else xr.Dataset({"t2m": TRUTH, "u": 2 * TRUTH})
    if variant == "no lead":
        handed = truth.rename(time="init")
    if variant.startswith("one observation"):
        handed = truth.isel(place=0, drop=True)
    paths = tmp_path / "forecasts.nc", tmp_path / "observed.nc"
    named = forecasts if isinstance(forecasts, xr.Dataset) else forecasts.to_dataset(name="t2m")
    named.isel(init=slice(DAY - 6, DAY + 3)).to_netcdf(paths[0])
    (handed if variant == "joint" else handed.to_dataset(name="t2m")).to_netcdf(paths[1])
    done = run(
        "cycle", tmp_path / "model.nc", "--forecasts", paths[0], "--observations", paths[1],
        "--output", tmp_path / "out", "--members", 5, "--now", STARTS[DAY + 2], "--json", "--quiet",
    )  # fmt: skip
    assert done.code in (0, 10), done.err
    assert done.data["issued"] == [stem(day) for day in (DAY, DAY + 1, DAY + 2)]
    for day in (DAY, DAY + 1, DAY + 2):
        known = (starts < STARTS[day]) & (valid <= STARTS[day])
        new = {"init": slice(day - 6, day)}
        model = model.update(forecasts.isel(new), observed.where(known).isel(new))
        path = tmp_path / "out" / "forecasts" / f"{stem(day)}.nc"
        expected = model.members(forecasts.isel(init=[day]), 5)
        with xr.open_dataset(path) as issued:
            found = issued["t2m"]
            expected = expected if isinstance(expected, xr.DataArray) else expected["t2m"]
            np.testing.assert_array_equal(found, expected.transpose(*found.dims))


KILL = "import sys\nfrom tests.cli.cycle_kills import main\nmain(*sys.argv[1:])"


def kill(folder, steps, seed, keep):
    done = python(KILL, folder, steps, seed, keep)
    assert done.code == 0, done.err
    told = json.loads(done.out.splitlines()[-1])
    print(told)
    assert told["failed"] == []
    assert len(told["came"]) == told["tried"] == steps
    assert told["steps"] > 60
    assert sum(one != "" for one in told["came"]) <= 1  # a lock that was cut off


def test_a_kill_at_some_moments(tmp_path):
    kill(tmp_path / "kills", 2, 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_kill_at_twenty_random_moments(tmp_path, seed):
    kill(tmp_path / "kills", 20, seed, 2)
