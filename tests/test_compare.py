import numpy as np
import pytest
import xarray as xr

import xrecal

from .strategies import FORMS, ensemble_and_truth, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


def compare(methods=None, forecast=NEW, verification=VERIFIED, hindcast=HINDCAST, **options):
    options = {"forecast": forecast, "verification": verification} | options
    return xrecal.compare(hindcast, TRUTH, methods, **options)


def one(result, label):
    return result.sel({"method": label}, drop=True)


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
def test_scores_are_those_of_the_models(chunks):
    hindcast, forecast = HINDCAST, NEW
    if chunks is not None:
        hindcast, forecast = hindcast.chunk(chunks), forecast.chunk(chunks)
    result = compare(forecast=forecast, hindcast=hindcast)
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
    result = compare()
    for reference in ("raw", "climatology"):
        skill = result[f"skill_{reference}"]
        expected = 1 - result.crps / one(result, reference).crps
        np.testing.assert_allclose(skill, expected.transpose(*skill.dims), rtol=1e-14)
        assert (one(result, reference)[f"skill_{reference}"] == 0).all()


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
    assert labels == ["raw", "climatology", repr(many[0]), repr(many[1]), "EMOS"]
    named = {"mine": xrecal.CKME(), "yours": xrecal.CKME()}
    assert list(compare(named).method.to_numpy()) == ["raw", "climatology", "mine", "yours"]
    with pytest.raises(ValueError, match="methods must differ, got"):
        compare([xrecal.EMOS(), xrecal.EMOS()])
    with pytest.raises(ValueError, match="the label 'raw' is that of the raw forecast"):
        compare({"raw": xrecal.EMOS()})


def test_table():
    head, *rows, foot = repr(compare()).splitlines()
    assert head.split() == ["CRPS", "skill", "v", "climatology", "skill", "v", "raw"]
    assert [row.split()[0] for row in rows] == ["raw", "climatology", "EMOS", "CKME"]
    assert foot == "28 cases, CRPS in K"
    raw = rows[0].split()
    assert float(raw[1]) == pytest.approx(NEW.recal.crps(VERIFIED).mean().item(), rel=1e-3)
    assert raw[3] == "0.0%"


def test_parts_of_a_comparison_print_too():
    result = compare([xrecal.EMOS()])
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
    xr.testing.assert_identical(result, compare([xrecal.EMOS()]))


def test_other_member_dimensions():
    result = compare(
        [xrecal.EMOS()],
        NEW.rename(member="m"),
        hindcast=HINDCAST.rename(member="m"),
        member_dim="m",
    )
    xr.testing.assert_identical(result, compare([xrecal.EMOS()]))


def test_what_cannot_be_compared():
    with pytest.raises(
        ValueError, match=r"compare takes one variable, but hindcast has \['a', 'b'"
    ):
        compare(hindcast=xr.Dataset({"a": HINDCAST, "b": HINDCAST}))
    with pytest.raises(ValueError, match="forecast lacks the dimension 'time' of the cases"):
        compare(forecast=NEW[0], verification=VERIFIED[0])
    with pytest.raises(TypeError, match=r"method must be settings such as EMOS\(\)"):
        compare([xrecal.EMOS])


def test_forecasts_that_were_fitted_on_are_told():
    with pytest.warns(UserWarning, match="48 of 48 forecasts to score are among those the methods"):
        xrecal.compare(HINDCAST, TRUTH, [xrecal.EMOS()], forecast=HINDCAST)


def test_wrong_methods_and_observations():
    with pytest.raises(TypeError, match=r"must be a list or a dict of methods; write \[EMOS"):
        xrecal.compare(HINDCAST, TRUTH, xrecal.EMOS(), forecast=NEW)
    with pytest.raises(ValueError, match="label 'climatology' is that of the reference"):
        xrecal.compare(HINDCAST, TRUTH, {"climatology": xrecal.EMOS()}, forecast=NEW)
    two = xr.Dataset({"a": TRUTH, "b": TRUTH})
    with pytest.raises(ValueError, match="compare takes one variable; pass observations"):
        xrecal.compare(HINDCAST, two, forecast=NEW)
