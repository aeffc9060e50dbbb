import numpy as np
import pytest
import xarray as xr
import xskillscore
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as drawn
from scipy.stats import pearsonr
from scores.continuous.correlation import pearsonr as of_scores

from xrecal.arrays import anomaly_correlation, standard_error


def test_equals_peers(rng):
    f, o = rng.normal(size=(2, 4, 30))
    o += f + 280.0
    found = anomaly_correlation(f, o).correlation
    labelled = [xr.DataArray(a, dims=["x", "case"]) for a in (f, o)]
    np.testing.assert_allclose(found, xskillscore.pearson_r(*labelled, dim="case"), atol=1e-12)
    np.testing.assert_allclose(found, of_scores(*labelled, preserve_dims="x"), atol=1e-12)
    np.testing.assert_allclose(
        found, [pearsonr(*pair).statistic for pair in zip(f, o, strict=True)]
    )


def test_uncentred_by_the_formula(rng):
    f, o = rng.normal(1.0, size=(2, 30))
    found = anomaly_correlation(f, o, centred=False)
    assert found.correlation == pytest.approx((f * o).sum() / np.sqrt((f**2).sum() * (o**2).sum()))
    assert found.correlation > anomaly_correlation(f, o).correlation
    assert found.influence.mean() == pytest.approx(0.0, abs=1e-14)


def test_standard_error_is_that_of_many_samples():
    rng = np.random.default_rng(1)
    f = rng.normal(size=(2000, 100))
    found = anomaly_correlation(f, 0.75 * f + rng.normal(size=f.shape))  # r = 0.6
    errors = standard_error(found.influence, lag=0)
    assert errors.mean() == pytest.approx(found.correlation.std(), rel=0.05)
    assert found.correlation.std() == pytest.approx((1 - 0.6**2) / 10, rel=0.05)


def test_missing_and_constant(rng):
    f, o = rng.normal(size=(2, 4, 12))
    f[0, 2], o[0, 5], o[0, 7] = np.nan, np.inf, np.nan
    f[1] = 0.1
    o[2, 2:] = np.nan
    found = anomaly_correlation(f, o)
    known = np.delete(np.arange(12), [2, 5, 7])
    assert found.correlation[0] == pytest.approx(pearsonr(f[0, known], o[0, known]).statistic)
    assert np.isnan(found.correlation[1:3]).all()
    assert np.isnan(found.influence[0, [2, 5, 7]]).all()
    assert np.isfinite(found.correlation[3])


@given(
    drawn(np.float64, 6, elements=st.integers(-20, 20).map(float)),
    drawn(np.float64, 6, elements=st.integers(-20, 20).map(float)),
    st.sampled_from([1e-200, 0.01, 3.0, 1e200]),
)
def test_laws(f, o, factor):
    found = anomaly_correlation(f, o).correlation
    np.testing.assert_allclose(anomaly_correlation(factor * f, o + 7).correlation, found, atol=1e-9)
    np.testing.assert_allclose(anomaly_correlation(o, -f).correlation, -found, atol=1e-12)
    assert np.isnan(found) == (np.ptp(f) == 0 or np.ptp(o) == 0)
