import importlib
from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import DATA, requires_data
from tests.pairs import pairwise
from tests.strategies import FORMS, ensemble_and_truth, new_cases
from xrecal import arrays
from xrecal.diagnostics import compare_evidence

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


def compare(methods=None, forecast=NEW, verification=VERIFIED, hindcast=HINDCAST, **options):
    options = {"forecast": forecast, "verification": verification} | options
    return xrecal.compare(hindcast, TRUTH, methods, **options)


@cache
def compared(*methods):
    """Of the first forecasts and their methods, made once; no test changes it."""
    return compare(list(methods))


def one(result, label):
    return result.sel({"method": label}, drop=True)


def timeless(result):
    return result.drop_vars(["fit_seconds", "apply_seconds"])


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
def test_scores_are_those_of_the_models(chunks):
    hindcast, forecast = HINDCAST, NEW
    if chunks is not None:
        hindcast, forecast = hindcast.chunk(chunks), forecast.chunk(chunks)
    result = compare([xrecal.EMOS(), xrecal.CKME()], forecast=forecast, hindcast=hindcast)
    assert list(result.method.to_numpy()) == ["raw", "climatology", "EMOS", "CKME"]
    assert not result.chunks
    expected = {"raw": NEW.recal.crps(VERIFIED)} | {
        label: HINDCAST.recal.fit(TRUTH, method).crps(NEW, VERIFIED)
        for label, method in {
            "climatology": xrecal.Climatology(),
            "EMOS": xrecal.EMOS(),
            "CKME": xrecal.CKME(),
        }.items()
    }
    for label, scores in expected.items():
        np.testing.assert_allclose(one(result, label).crps, scores.mean("time"), rtol=1e-12)
    assert (result.n_cases == 7).all()
    assert result.crps.attrs["units"] == "K"


def test_skill_is_one_minus_the_ratio():
    result = compared(xrecal.EMOS(), xrecal.CKME())
    for reference in ("raw", "climatology"):
        skill = result[f"skill_{reference}"]
        expected = 1 - result.crps / one(result, reference).crps
        np.testing.assert_allclose(skill, expected.transpose(*skill.dims), rtol=1e-14)
        assert (one(result, reference)[f"skill_{reference}"] == 0).all()


@pytest.mark.filterwarnings("ignore:weights along .* do not sum to one")
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form):
    result = compare([xrecal.CKME(ridge=0.1)], FORMS[form](NEW), hindcast=FORMS[form](HINDCAST))
    assert result.crps.notnull().all()


def test_methods_are_scored_on_the_cases_all_of_them_predict():
    # dates without a past case in so narrow a window have no climatology
    window = xrecal.Climatology(window=6)
    dates = NEW.time + np.arange(7) * np.timedelta64(2, "D")
    new, verified = NEW.assign_coords(time=dates), VERIFIED.assign_coords(time=dates)
    result = compare({"window": window, "EMOS": xrecal.EMOS()}, new, verified)
    predicted = HINDCAST.recal.fit(TRUTH, window).crps(new, verified).notnull()
    assert 0 < predicted.sum() < predicted.size
    np.testing.assert_array_equal(result.n_cases, predicted.sum("time"))
    raw = new.recal.crps(verified).where(predicted).mean("time")
    np.testing.assert_allclose(one(result, "raw").crps, raw)


def test_missing_locations_do_not_count():
    verified = VERIFIED.where(VERIFIED.lat > 45)
    result = compare([xrecal.EMOS()], verification=verified)
    np.testing.assert_array_equal(result.n_cases, [[0, 0], [7, 7]])
    assert np.isnan(result.crps[:, 0]).all()
    assert "14 cases" in repr(result)


def test_labels():
    many = [xrecal.CKME(), xrecal.CKME(kernel="laplace"), xrecal.Climatology(), xrecal.EMOS()]
    labels = list(compare(many).method.to_numpy())
    assert labels == ["raw", "climatology", "CKME", "CKME(kernel='laplace')", "EMOS"]
    seasons = [xrecal.EMOS(bounds=None), xrecal.EMOS(bounds=None, condition_on="season")]
    labels = list(compare(seasons).method.to_numpy())
    assert labels == ["raw", "climatology", "EMOS", "EMOS(condition_on='season')"]
    named = {"mine": xrecal.CKME(), "yours": xrecal.CKME()}
    assert list(compare(named).method.to_numpy()) == ["raw", "climatology", "mine", "yours"]
    with pytest.raises(ValueError, match="methods must differ, got"):
        compare([xrecal.EMOS(), xrecal.EMOS()])
    with pytest.raises(ValueError, match="the label 'raw' belongs to the raw forecast"):
        compare({"raw": xrecal.EMOS()})


def test_the_pool_is_among_the_methods_if_none_are_named():
    result = compare()
    labels = ["raw", "climatology", "EMOS", "CKME", "LinearPool"]
    assert list(result.method.to_numpy()) == labels


def test_a_method_is_selected_by_its_label():
    result = compared(xrecal.EMOS(), xrecal.CKME())
    assert result.sel(method="EMOS").crps.equals(result.sel({"method": "EMOS"}).crps)
    assert list(result.sel(method=["raw", "CKME"]).method.to_numpy()) == ["raw", "CKME"]
    with pytest.raises(KeyError, match="nonsense"):
        result.sel(method="nonsense")


def test_table():
    result = compare([xrecal.EMOS(), xrecal.CKME()], block_length=1)
    head, *rows, foot, told, remark = repr(result).splitlines()
    shown = ["CRPS", "±", "skill v climatology", "p", "skill v raw", "p"]
    shown += ["PIT rejects", "SKCE rejects", "seconds"]
    assert " ".join(head.split()) == " ".join(shown)
    assert [row.split()[0] for row in rows] == ["raw", "climatology", "EMOS", "CKME"]
    assert foot == "28 cases, CRPS in K"
    assert told == "successive cases that count as one: PIT 1, SKCE 1"
    assert "has the best CRPS, but PIT rejects it (at " in remark
    raw, _, emos, _ = (row.split() for row in rows)
    assert float(raw[1]) == pytest.approx(NEW.recal.crps(VERIFIED).mean().item(), rel=1e-3)
    assert raw[5] == "0.0%"  # no p against itself
    assert float(raw[2]) == pytest.approx(result.overall_crps_error[0].item(), rel=0.1)
    assert float(emos[4]) == pytest.approx(
        one(result, "EMOS").overall_p_climatology.item(), rel=0.1
    )
    page = result._repr_html_()
    assert page.count("<tr>") == 5
    for cell in (*emos, f"28 cases, CRPS in K<br>{told}<br>{remark}"):
        assert cell in page


def test_calibration_is_that_of_the_forecasts():
    """PIT and SKCE of each method, on quantiles of what it issues."""
    levels = (np.arange(200) + 0.5) / 200
    result = compared(xrecal.EMOS(), xrecal.CKME())
    raw = one(result, "raw")
    np.testing.assert_array_equal(
        raw.pit_p_value, NEW.recal.pit_test(VERIFIED, block_length=None).p_value
    )
    np.testing.assert_array_equal(
        raw.skce_p_value, NEW.recal.skce_test(VERIFIED, test="serial").p_value
    )
    for label, method in {"CKME": xrecal.CKME(), "EMOS": xrecal.EMOS()}.items():
        model, found = HINDCAST.recal.fit(TRUTH, method), one(result, label)
        pit = model.pit(NEW, VERIFIED)
        expected = arrays.serial_uniform_test(pit.transpose(..., "time").to_numpy())[1]
        np.testing.assert_allclose(found.pit_p_value, expected, rtol=1e-10)
        tested = model.quantile(NEW, levels).recal.skce_test(VERIFIED, test="serial")
        np.testing.assert_allclose(found.skce, tested.skce, atol=1e-12)
        np.testing.assert_array_equal(found.skce_p_value, tested.p_value)


def test_calibration_of_cross_validated_methods():
    levels = (np.arange(200) + 0.5) / 200
    result = validated(xrecal.EMOS())
    options = {"method": xrecal.EMOS(), "by": "block"}
    pit = HINDCAST.recal.cross_validate(TRUTH, output="pit", **options)
    expected = arrays.serial_uniform_test(pit.transpose(..., "time").to_numpy())[1]
    np.testing.assert_array_equal(one(result, "EMOS").pit_p_value, expected)
    issued = HINDCAST.recal.cross_validate(TRUTH, output="quantile", q=levels, **options)
    tested = issued.recal.skce_test(TRUTH, test="serial")
    assert (one(result, "raw").skce_p_value < 0.02).all()
    np.testing.assert_array_equal(one(result, "EMOS").skce_p_value, tested.p_value)


def test_large_forecasts_are_compared_piece_by_piece(monkeypatch):
    expected = timeless(validated(xrecal.EMOS())), timeless(compared(xrecal.EMOS()))
    monkeypatch.setattr(compare_evidence, "PIECE", 1)
    found = timeless(validate([xrecal.EMOS()])), timeless(compare([xrecal.EMOS()]))
    for a, b in zip(found, expected, strict=True):
        xr.testing.assert_identical(xr.Dataset(a.data_vars), xr.Dataset(b.data_vars))


def test_one_location_shows_p_values():
    here = {"lat": 0, "lon": 0}
    result = validate([xrecal.EMOS()], HINDCAST.isel(here), TRUTH.isel(here))
    head, raw, *_ = repr(result).splitlines()
    assert head.split()[-5:] == ["PIT", "p", "SKCE", "p", "seconds"]
    assert raw.split()[-3:-1] == ["<0.001", "<0.001"]


def test_labels_are_safe_in_a_page():
    assert "a &lt; b" in compare({"a < b": xrecal.EMOS()})._repr_html_()


def test_parts_of_a_comparison_print_too():
    result = compared(xrecal.EMOS())
    for part in (result[["crps"]], one(result, "EMOS"), result.drop_sel(method=["raw"])):
        assert "xarray" in repr(part)
    assert "28 cases" in repr(result.sel({"method": ["EMOS", "raw", "climatology"]}))


def test_forecasts_without_error_have_no_skill_but_a_table():
    result = xrecal.compare(
        HINDCAST * 0, TRUTH * 0, [xrecal.EMOS()], forecast=NEW * 0, verification=VERIFIED * 0
    )
    assert (result.crps == 0).all()
    assert "nan%" in repr(result)


def test_observations_verify_unless_others_are_given():
    both = xr.concat([TRUTH, VERIFIED], "time")
    result = xrecal.compare(HINDCAST, both, [xrecal.EMOS()], forecast=NEW)
    xr.testing.assert_identical(timeless(result), timeless(compared(xrecal.EMOS())))


def test_other_member_dimensions():
    result = compare(
        [xrecal.EMOS()],
        NEW.rename(member="m"),
        hindcast=HINDCAST.rename(member="m"),
        member_dim="m",
    )
    xr.testing.assert_identical(timeless(result), timeless(compared(xrecal.EMOS())))


def test_what_cannot_be_compared():
    with pytest.raises(
        ValueError, match=r"compare takes one variable, but hindcast has \['a', 'b'"
    ):
        compare(hindcast=xr.Dataset({"a": HINDCAST, "b": HINDCAST}))
    with pytest.raises(ValueError, match="forecast lacks the dimension 'time' of the cases"):
        compare(forecast=NEW[0], verification=VERIFIED[0])
    with pytest.raises(TypeError, match=r"method must be settings such as xrecal.EMOS\(\)"):
        compare([xrecal.EMOS])


def test_forecasts_that_were_fitted_on_are_told():
    with pytest.warns(
        UserWarning, match="48 of 48 forecasts to score are among those that the methods"
    ):
        xrecal.compare(HINDCAST, TRUTH, [xrecal.EMOS()], forecast=HINDCAST)


def test_a_method_alone_is_compared_with_raw_and_climatology():
    alone, listed = compare(xrecal.EMOS()), compared(xrecal.EMOS())
    assert alone.method.to_numpy().tolist() == ["raw", "climatology", "EMOS"]
    np.testing.assert_array_equal(alone.crps, listed.crps)


def test_wrong_methods_and_observations():
    with pytest.raises(ValueError, match="label 'climatology' belongs to the reference"):
        xrecal.compare(HINDCAST, TRUTH, {"climatology": xrecal.EMOS()}, forecast=NEW)
    two = xr.Dataset({"a": TRUTH, "b": TRUTH})
    with pytest.raises(ValueError, match="compare takes one variable; pass observations"):
        xrecal.compare(HINDCAST, two, forecast=NEW)


def validate(methods=None, hindcast=HINDCAST, truth=TRUTH, **options):
    return xrecal.compare(hindcast, truth, methods, **options)


@cache
def validated(*methods):
    """Of the whole hindcast, made once; no test changes it."""
    return validate(list(methods))


def test_without_new_forecasts_methods_are_cross_validated():
    result = validate(by="year", gap=1)
    assert result.attrs["cross_validation"] == "by='year', gap=1"
    assert "192 cases, CRPS in K, cross-validated by='year', gap=1\n" in repr(result)
    np.testing.assert_allclose(one(result, "raw").crps, HINDCAST.recal.crps(TRUTH, "time"))
    for label, method in {"EMOS": xrecal.EMOS(), "CKME": xrecal.CKME()}.items():
        scores = HINDCAST.recal.cross_validate(TRUTH, method, by="year", gap=1, output="crps")
        np.testing.assert_allclose(one(result, label).crps, scores.mean("time"), rtol=1e-12)
    assert (result.fit_seconds[1:] > 0).all()
    assert result.apply_seconds[1:].isnull().all()
    few = [xrecal.EMOS(), xrecal.CKME()]
    lazily = validate(few, HINDCAST.chunk(lat=1), by="year", gap=1)
    assert not lazily.chunks
    expected = result.sel({"method": lazily.method})
    for name in ("crps", "n_cases", "skill_raw", "pit_p_value", "skce_p_value"):
        np.testing.assert_allclose(lazily[name], expected[name], rtol=1e-12, err_msg=name)


def test_cases_before_the_first_prediction_do_not_count():
    result = validate([xrecal.EMOS()], by="retrospective", blocks=2)
    assert (result.n_cases == 24).all()
    raw = HINDCAST[24:].recal.crps(TRUTH, "time")
    np.testing.assert_allclose(one(result, "raw").crps, raw)


ROLLING = {"by": "rolling", "blocks": 2, "every": 4, "min_samples": 10}


@pytest.mark.parametrize("gap", [{}, {"gap": 2}])
def test_models_that_are_updated_are_scored_as_they_are_cross_validated(gap):
    few, truth = HINDCAST[:, :, :1], TRUTH[:, :1]
    options = ROLLING | {"refit": 12} | gap
    result = validate([xrecal.CKME()], few, truth, **options)
    expected = few.recal.cross_validate(truth, xrecal.CKME(), output="crps", **options)
    np.testing.assert_allclose(one(result, "CKME").crps, expected.mean("time"), rtol=1e-12)
    assert result.attrs["cross_validation"] == expected.attrs["cross_validation"]
    assert "refit=12" in repr(result)
    anew = validate([xrecal.CKME()], few, truth, **ROLLING, **gap)
    assert (one(anew, "CKME").crps != one(result, "CKME").crps).any()


def test_a_method_with_a_refit_of_its_own_keeps_to_it():
    few, truth = HINDCAST[:, :, :1, :1], TRUTH[:, :1, :1]
    method = xrecal.OnlinePool((xrecal.Climatology(),), refit=20)
    expected = few.recal.cross_validate(truth, method, output="crps", **ROLLING).mean("time")
    for given in ({}, {"refit": 12}):
        result = validate([method], few, truth, **ROLLING, **given)
        np.testing.assert_allclose(one(result, "OnlinePool").crps, expected, rtol=1e-12)


class Final(xrecal.EMOS):
    updates = False


def test_what_cannot_be_updated_is_refused_before_any_work(monkeypatch):
    def none(*_):
        raise AssertionError("worked")

    monkeypatch.setattr(importlib.import_module("xrecal.diagnostics.compare"), "Candidate", none)
    with pytest.raises(ValueError, match="Final does not store its cases, so it cannot add"):
        validate([xrecal.EMOS(), Final()], **ROLLING, refit=12)
    with pytest.raises(ValueError, match="refit belongs to by='rolling', but by is 'year'"):
        validate([xrecal.EMOS()], by="year", refit=12)


def scores_of(method):
    return HINDCAST.recal.cross_validate(TRUTH, method, by="block", output="crps").to_numpy()


def test_significance_is_that_of_the_paired_scores():
    result = validated(xrecal.EMOS())
    raw = HINDCAST.recal.crps(TRUTH).to_numpy()
    emos, climatology = scores_of(xrecal.EMOS()), scores_of(xrecal.Climatology())
    for name, reference in (("raw", raw), ("climatology", climatology)):
        difference = emos - reference
        p = arrays.diebold_mariano(np.moveaxis(difference, 0, -1))[1]
        np.testing.assert_allclose(one(result, "EMOS")[f"p_{name}"], p)
        overall = arrays.diebold_mariano(difference.mean((1, 2)))[1]
        found = one(result, "EMOS")[f"overall_p_{name}"]
        np.testing.assert_allclose(found, overall)
        assert (one(result, name)[f"p_{name}"] == 1).all()
    error = arrays.standard_error(np.moveaxis(emos, 0, -1))
    np.testing.assert_allclose(one(result, "EMOS").crps_error, error)
    overall = arrays.standard_error(emos.mean((1, 2)))
    np.testing.assert_allclose(one(result, "EMOS").overall_crps_error, overall)


def test_copies_of_a_location_make_nothing_more_significant():
    """A field of equal series is one series."""
    single = validate([xrecal.EMOS()], HINDCAST[:, :, 0, 0], TRUTH[:, 0, 0])
    assert "overall_crps_error" not in single
    many = xr.concat([HINDCAST[:, :, 0, 0]] * 5, "copy")
    result = validate([xrecal.EMOS()], many, xr.concat([TRUTH[:, 0, 0]] * 5, "copy"))
    np.testing.assert_allclose(result.overall_p_raw, single.p_raw)
    np.testing.assert_allclose(result.overall_crps_error, single.crps_error)
    rows = [[line.split()[:6] for line in repr(r).splitlines()[1:5]] for r in (single, result)]
    assert rows[0][:-1] == rows[1][:-1]


def test_tables_of_some_locations_show_no_significance_of_all():
    result = validated(xrecal.EMOS())
    assert "±" in repr(result)
    assert "±" not in repr(result.isel(lat=[0]))
    assert "±" in repr(result.isel(lat=0, lon=0))  # that of the location itself


def test_the_order_of_cases_does_not_matter():
    order = np.random.default_rng(0).permutation(48)
    found = validate([xrecal.EMOS()], HINDCAST[order])
    xr.testing.assert_allclose(timeless(found), timeless(validated(xrecal.EMOS())), rtol=1e-12)


def test_season_and_other_covariates():
    result = validate({"EMOS": xrecal.EMOS(), "with": xrecal.EMOS(condition_on="season")})
    season = validate([xrecal.EMOS()], condition_on="season")
    np.testing.assert_array_equal(one(season, "EMOS").crps, one(result, "with").crps)
    np.testing.assert_array_equal(one(season, "climatology").crps, one(result, "climatology").crps)
    dates = xr.concat([TRUTH.time, NEW.time], "time")
    height = xr.DataArray(np.cos(np.arange(55)), dims="time", coords={"time": dates})
    methods = [xrecal.EMOS(), xrecal.EMOS(condition_on="height")]
    result = compare(methods, covariates={"height": height})
    model = HINDCAST.recal.fit(TRUTH, methods[1], covariates={"height": height})
    expected = model.crps(NEW, VERIFIED, "time", covariates={"height": height})
    np.testing.assert_allclose(one(result, "EMOS(condition_on='height')").crps, expected)
    plain = compare([xrecal.EMOS()])
    np.testing.assert_array_equal(one(result, "EMOS").crps, one(plain, "EMOS").crps)
    with pytest.raises(ValueError, match=r"no method conditions on the covariates \['height'\]"):
        compare([xrecal.EMOS(condition_on="season")], covariates={"height": height})


def test_named_dimension_of_cases():
    hindcast, truth = HINDCAST.rename(time="run"), TRUTH.rename(time="run")
    result = validate([xrecal.EMOS()], hindcast, truth, dim="run")
    xr.testing.assert_identical(timeless(result), timeless(validated(xrecal.EMOS())))


POOLS = {"positions": ("lat", "lon"), "lat": "lat", "windows": {"lat": 3}}
POOLED = {
    "climatology": xrecal.Climatology(),
    "EMOS": xrecal.EMOS(),
    "CKME": xrecal.CKME(support="errors"),
}


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("pool", "by", "chunks"),
    pairwise(POOLS, ["year", "block", "retrospective"], [None, {"lat": -1}]),
)
def test_pooled_methods_are_cross_validated(pool, by, chunks):
    few, truth = (array[::4] for array in ensemble_and_truth(n_lat=3))
    truth = truth.where(truth.lat + truth.lon > 45.5)  # nowhere at one place
    options = {"pool": POOLS[pool], "by": by, "min_samples": 3}
    own = {"climatology": options | {"pool": None, "min_samples": 2}}  # of each place
    scores = {"raw": few.recal.crps(truth)} | {
        label: few.recal.cross_validate(truth, method, output="crps", **own.get(label, options))
        for label, method in POOLED.items()
    }
    if chunks is not None:
        few, truth = few.chunk(chunks), truth.chunk(chunks)
    result = validate(POOLED, few, truth, **options)
    known = xr.concat(scores.values(), "method").notnull().all("method")
    assert 0 < known.sum() < known.size
    np.testing.assert_array_equal(result.n_cases, known.sum("time"))
    for label, values in scores.items():
        expected = values.where(known).mean("time")
        np.testing.assert_allclose(one(result, label).crps, expected, rtol=1e-12)
    assert result.attrs["pool"] == repr(POOLS[pool])
    assert f", pool={POOLS[pool]!r}" in repr(result)


@pytest.mark.each_value
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("piece", [compare_evidence.PIECE, 1])
def test_pooled_methods_on_later_forecasts(pool, piece, monkeypatch):
    monkeypatch.setattr(compare_evidence, "PIECE", piece)
    few, truth = (array[::4] for array in ensemble_and_truth(n_lat=3))
    new, verified = new_cases(n_lat=3)
    settings = {"pool": POOLS[pool], "min_samples": 3}
    result = validate(POOLED, few, truth, forecast=new, verification=verified, **settings)
    for label, method in POOLED.items():
        own = {"min_samples": 2} if label == "climatology" else settings
        scores = few.recal.fit(truth, method, **own).crps(new, verified)
        np.testing.assert_allclose(one(result, label).crps, scores.mean("time"), rtol=1e-12)
    assert result.attrs["pool"] == repr(POOLS[pool])


def test_knowing_the_climate_of_each_cell_is_no_skill():
    """Cells of different means, pooled: the reference is the climatology of each cell."""
    shift = xr.DataArray([-30.0, 30.0], {"lat": TRUTH.lat})
    hindcast = (HINDCAST + shift).assign_attrs(HINDCAST.attrs)
    truth = (TRUTH + shift).assign_attrs(TRUTH.attrs)
    methods = {"own": xrecal.Climatology(), "EMOS": xrecal.EMOS()}
    apart = xrecal.compare(hindcast, truth, methods)
    np.testing.assert_allclose(one(apart, "own").skill_climatology, 0, atol=1e-12)
    assert repr(apart).splitlines()[3].split()[3] == "0.0%"  # in the table too
    pooled = xrecal.compare(hindcast, truth, methods, pool=("lat", "lon"))
    reference = one(apart, "climatology").crps
    np.testing.assert_allclose(one(pooled, "climatology").crps, reference, rtol=1e-12)
    assert (one(pooled, "own").skill_climatology < -1).all()  # that of all cells


def test_pooled_positions_are_not_cut_into_pieces(monkeypatch):
    options = {"pool": "lat", "by": "block"}
    whole = validate([xrecal.EMOS()], **options)
    monkeypatch.setattr(compare_evidence, "PIECE", 1)
    for pool in ("lat", ("lat", "lon")):
        found = validate([xrecal.EMOS()], **options | {"pool": pool})
        if pool == "lat":
            xr.testing.assert_allclose(timeless(found), timeless(whole), rtol=1e-12)
        assert (found.n_cases == 48).all()


def test_what_cannot_be_pooled_is_refused_before_any_score(monkeypatch):
    monkeypatch.setattr(importlib.import_module("xrecal.diagnostics.compare"), "as_issued", None)
    with pytest.raises(ValueError, match="no location dimension 'depth'"):
        validate([xrecal.EMOS()], pool="depth")
    with pytest.raises(ValueError, match=r"window 3 along 'lat' is larger than its 2 positions"):
        validate([xrecal.EMOS()], pool={"lat": 3})
    with pytest.raises(ValueError, match=r"hindcast.chunk\(\{'lat': -1\}\)"):
        validate([xrecal.EMOS()], HINDCAST.chunk(lat=1), pool="lat")
    with pytest.raises(ValueError, match=r"observations.chunk\(\{'lat': -1\}\)"):
        validate([xrecal.EMOS()], truth=TRUTH.chunk(lat=1), pool="lat")


def test_splits_and_new_forecasts_exclude_each_other():
    with pytest.raises(
        ValueError, match="by, gap, blocks, window, every, refit, year_start split the"
    ):
        compare(by="year")
    with pytest.raises(ValueError, match="split the hindcast, but"):
        compare(gap=1)
    with pytest.raises(ValueError, match="verification is given without forecast"):
        validate(verification=VERIFIED)


def test_single_precision():
    result = validate([xrecal.EMOS()], HINDCAST.astype(np.float32), TRUTH.astype(np.float32))
    for name in ("crps", "crps_error", "skill_raw"):
        assert result[name].dtype == np.float32


@requires_data("innsbruck_gefs.nc")
def test_innsbruck():
    """Figures known from other implementations of the same split."""
    with xr.open_dataset(DATA / "innsbruck_gefs.nc") as data:
        forecast, truth = data.tmin_forecast.load(), data.tmin_observation.load()
    past, later = (forecast.sel(time=slice(*years)) for years in (("2000", "2009"), ("2010", None)))
    methods = [xrecal.EMOS(), xrecal.EMOS(condition_on="season")]
    result = xrecal.compare(past, truth, methods, forecast=later)
    crps = dict(zip(result.method.to_numpy(), result.crps.to_numpy(), strict=True))
    assert crps["raw"] == pytest.approx(8.61, abs=0.005)
    assert crps["EMOS"] == pytest.approx(1.792, abs=0.002)
    assert crps["EMOS(condition_on='season')"] == pytest.approx(1.340, abs=0.005)
    assert (result.sel({"method": "EMOS"}).p_climatology < 0.001).all()


# looked at after every case -----------------------------------------------------------------------


@cache
def sequential():
    """A comparison and the later cases that it is of, made once; no test changes them."""
    past, (new, verified) = ensemble_and_truth(n=60)[0], new_cases(n=40)
    return compare([xrecal.EMOS()], new, verified, past, sequential=True), new, verified


def test_e_values_are_those_of_the_quantiles():
    result, new, verified = sequential()
    q = (np.arange(200) + 0.5) / 200
    past = ensemble_and_truth(n=60)[0]
    issued = {"raw": new.recal.quantile(q)} | {
        label: past.recal.fit(TRUTH, method).quantile(new, q)
        for label, method in {"climatology": xrecal.Climatology(), "EMOS": xrecal.EMOS()}.items()
    }
    values = {label: v.transpose("lat", "lon", "time", "quantile") for label, v in issued.items()}
    y = verified.transpose("lat", "lon", "time").to_numpy()
    for reference in ("raw", "climatology"):
        e_values = result[f"e_{reference}"]
        assert e_values.dims == ("method", "lat", "lon", "time")
        r = values[reference].to_numpy()
        for label, array in values.items():
            gain = arrays.crps(y, r) - arrays.crps(y, array.to_numpy())
            bound = 2 * abs(np.sort(r) - np.sort(array.to_numpy())).mean(-1)
            expected = arrays.score_e_values(gain, bound)
            np.testing.assert_allclose(one(e_values, label), expected, rtol=1e-9)
        assert (one(e_values, reference) == 1).all()
    assert (one(result, "EMOS").e_climatology[..., -1] > 10).all()


def test_a_sequential_comparison_is_otherwise_the_same():
    result, new, verified = sequential()
    past, _ = ensemble_and_truth(n=60)
    plain = compare([xrecal.EMOS()], new, verified, past)
    added = ["e_climatology", "e_raw"]
    assert set(result) - set(plain) == set(added)
    xr.testing.assert_identical(timeless(result).drop_vars([*added, "time"]), timeless(plain))
    assert repr(result).splitlines()[-1] == repr(plain).splitlines()[-1]
    lazy = compare([xrecal.EMOS()], new.chunk(lat=1), verified, past.chunk(lat=1), sequential=True)
    xr.testing.assert_allclose(lazy.e_raw, result.e_raw, rtol=1e-9)
    mixed = np.random.default_rng(0).permutation(40)
    other = compare([xrecal.EMOS()], new[mixed], verified, past, sequential=True)
    xr.testing.assert_allclose(other.e_raw, result.e_raw, rtol=1e-9)


def test_sequential_comparisons_know_nothing_of_later_cases():
    past, truth = ensemble_and_truth(n=60, n_lat=1, n_lon=1)
    for by in ("block", "year"):
        with pytest.raises(
            ValueError, match=rf"by='{by}' learns from them; use by='retrospective' o"
        ):
            xrecal.compare(past, truth, [xrecal.EMOS()], by=by, sequential=True)
    found = xrecal.compare(
        past, truth, [xrecal.EMOS()], by="rolling", every=20, min_samples=10, sequential=True
    )
    known = found.e_raw.notnull() & (found.e_raw != 1)
    assert known.sel({"method": "EMOS"}).any()


def test_leads_of_a_sequential_comparison():
    past, truth = (a.isel(lat=0, lon=0) for a in ensemble_and_truth(n=60))
    new, verified = (a.isel(lat=0, lon=0) for a in new_cases(n=40))
    new_at, past_at = (
        f.drop_vars("time").rename(time="init").assign_coords(init=t)
        for f, t in ((new, new.time.values), (past, past.time.values))
    )
    new_at, past_at, y, y_past = (
        f.expand_dims(lead=[30, 90], axis=1).assign_coords(
            lead=("lead", [30, 90], {"units": "days"})
        )
        for f in (new_at, past_at, verified.rename(time="init"), truth.rename(time="init"))
    )
    found = xrecal.compare(
        past_at, y_past, [xrecal.EMOS()], forecast=new_at, verification=y, sequential=True
    )
    first = found.e_climatology.isel(init=0)
    np.testing.assert_allclose(one(first, "climatology"), [1, 1 / 3])


@cache
def one_lead():
    """Forecasts at two locations and one lead of five days, and what verified them."""
    data = xrecal.datasets.lorenz96(n_inits=60, n_members=5, n_locations=4, lead_days=[5])
    return data.isel(location=[0, 2])


@cache
def of_one_lead(later):
    """The comparison of the same without lead and valid time, made once; no test changes it."""
    labels = ["lead", "valid_time"]
    forecast, observed = (one_lead()[n].isel(lead=0) for n in ("forecast", "observation"))
    forecast, observed = forecast.drop_vars(labels), observed.drop_vars(labels)
    past, given = (forecast[:40], {"forecast": forecast[40:]}) if later else (forecast, {})
    return xrecal.compare(past, observed, [xrecal.EMOS()], **given)


@pytest.mark.parametrize("told", ["valid_time", "lead", "both"])
def test_one_lead_pairs_once_at_its_valid_time(told):
    data = one_lead()
    whole = data.forecast.isel(lead=0)
    series = data.observation.isel(lead=0).swap_dims(init="valid_time").rename(valid_time="time")
    series = series.drop_vars(["init", "lead"])
    drop = {"valid_time": ["lead"], "lead": ["valid_time"], "both": []}[told]
    forecasts = whole.drop_vars(drop)
    for given in ({}, {"forecast": forecasts[40:]}):
        hindcast = forecasts[:40] if given else forecasts
        found = xrecal.compare(hindcast, series, [xrecal.EMOS()], **given)
        expected = of_one_lead(later=bool(given))
        np.testing.assert_allclose(found["crps"], expected["crps"], rtol=1e-12)
        # Relative to the climatology of a season: of the valid time here, of the start there.
        np.testing.assert_allclose(found["skce"], expected["skce"], rtol=1e-3)


# rows ---------------------------------------------------------------------------------------------


def cells_of(result):
    return [line.split() for line in repr(result).splitlines()]


@pytest.mark.parametrize("forecast", [None, NEW])
def test_rows_by_a_dimension(forecast):
    given = {"verification": VERIFIED} if forecast is not None else {}
    call = {"hindcast": HINDCAST, "observations": TRUTH, "methods": [xrecal.EMOS()]}
    plain = xrecal.compare(**call, forecast=forecast, **given)
    found = xrecal.compare(**call, forecast=forecast, by="lat", **given)
    xr.testing.assert_allclose(
        timeless(found)[["crps", "p_pair"]], timeless(plain)[["crps", "p_pair"]]
    )
    assert found.overall_p_raw.dims == found.overall_crps_error.dims == ("method", "lat")
    head, *rows = cells_of(found)[:7]
    assert head[:4] == ["lat", "method", "cases", "CRPS"]
    labels = [f"{lat:g}" for lat in HINDCAST.lat.values for _ in range(3)]
    assert [row[0] for row in rows] == labels
    assert [row[1] for row in rows] == ["raw", "climatology", "EMOS"] * 2
    for row, lat in zip(rows[2::3], HINDCAST.lat.values, strict=True):
        one_lat = {"lat": [lat]}
        of_lat = xrecal.compare(
            HINDCAST.sel(one_lat), TRUTH.sel(one_lat), [xrecal.EMOS()], choose="each",
            forecast=None if forecast is None else forecast.sel(one_lat),
            **{name: array.sel(one_lat) for name, array in given.items()},
        )  # fmt: skip
        crps = one(of_lat, "raw").crps.mean()
        at = one(found, "raw").crps.sel(lat=lat).mean()
        np.testing.assert_allclose(at, crps, rtol=1e-12)
        expected = one(of_lat, "climatology").overall_p_raw
        p = one(found, "climatology").overall_p_raw.sel(lat=lat)
        np.testing.assert_allclose(p, expected, rtol=1e-9)
        crps = one(found, "EMOS").crps.sel(lat=lat).mean().item()
        assert float(row[3]) == pytest.approx(crps, rel=1e-3)
    assert found._repr_html_().count("<tr>") == 7


def test_rows_by_season_are_comparisons_of_the_cases_of_each():
    time = np.datetime64("2001-01-15") + 45 * np.arange(HINDCAST.sizes["time"]).astype("m8[D]")
    hindcast, truth = HINDCAST.assign_coords(time=time), TRUTH.assign_coords(time=time)
    found = xrecal.compare(hindcast, truth, [xrecal.EMOS()], by=("year", "season"), block_length=1)
    assert list(found.season.values) == ["DJF", "MAM", "JJA", "SON"]
    assert int(found.n_cases.sum()) == truth.size
    assert ", cross-validated by='year'" in repr(found)
    scores = hindcast.recal.cross_validate(truth, xrecal.EMOS(), by="year", output="crps")
    for season in found.season.values:
        cases = (hindcast.time.dt.season == season).values
        expected = scores.isel(time=cases).mean("time")
        np.testing.assert_allclose(one(found, "EMOS").crps.sel(season=season), expected)
        raw = one(found, "raw").sel(season=season)
        alone = hindcast.isel(time=cases).recal.skce_test(
            truth.isel(time=cases), test="serial", block_length=1
        )
        np.testing.assert_allclose(raw.skce, alone.skce, rtol=1e-9)
        np.testing.assert_allclose(raw.skce_p_value, alone.p_value, rtol=1e-9)
    assert [row[0] for row in cells_of(found)[1:13:3]] == list(found.season.values)


def test_seasons_are_those_of_the_valid_time():
    starts = np.datetime64("2000-05-28") + 365 * np.arange(40).astype("m8[D]")
    lead = np.array([1, 10]).astype("m8[D]").astype("m8[ns]")
    shape, rng = (40, 2, 5), np.random.default_rng(2)
    coords = {"init": starts, "lead_time": lead}
    hindcast = xr.DataArray(rng.normal(size=shape), coords, ("init", "lead_time", "member"), "t")
    truth = hindcast.mean("member") + 0.1
    found = xrecal.compare(hindcast, truth, [xrecal.EMOS()], by="season")
    np.testing.assert_array_equal(found.n_cases.sel(season="JJA") > 0, [False, True])
    by_lead = cells_of(xrecal.compare(hindcast, truth, [xrecal.EMOS()], by="lead_time"))
    assert [row[:2] for row in by_lead[1:7:3]] == [["1", "d"], ["10", "d"]]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (
            "latt",
            r"by='latt' is not a dimension of places or leads of hindcast; name one of \['lat'",
        ),
        ("time", "by='time' is not a dimension of places or leads of hindcast"),
        (("year", "block"), "must name one split of"),
        (("lat", "lon"), "a dimension of places or leads, or 'season'"),
    ],
)
def test_wrong_rows(by, message):
    with pytest.raises(ValueError, match=message):
        xrecal.compare(HINDCAST, TRUTH, [xrecal.EMOS()], by=by)


def test_seasons_need_dates():
    hindcast, truth = (a.assign_coords(time=np.arange(a.sizes["time"])) for a in (HINDCAST, TRUTH))
    with pytest.raises(ValueError, match="by='season' needs dates along 'time'"):
        xrecal.compare(hindcast, truth, [xrecal.EMOS()], by="season")
