import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from xrecal.arrays import adjusted_p_values

maps = arrays(np.float64, (3, 5), elements=st.floats(0, 1) | st.just(np.nan))


@given(maps, st.sampled_from(["bh", "by"]))
def test_follows_the_definition(p, method):
    adjusted = adjusted_p_values(p, method)
    assert adjusted.shape == p.shape
    known = p[~np.isnan(p)]
    np.testing.assert_array_equal(np.isnan(adjusted), np.isnan(p))
    n = known.size
    share = n * (sum(1 / i for i in range(1, n + 1)) if method == "by" else 1)
    for value, found in zip(known, adjusted[~np.isnan(p)], strict=True):
        candidates = [share * q / sum(known <= q) for q in known if q >= value]
        assert found == pytest.approx(min(1.0, *candidates), abs=1e-12)
    if n:
        expected = stats.false_discovery_control(known, method=method)
        np.testing.assert_array_equal(adjusted[~np.isnan(p)], expected)
        assert (adjusted[~np.isnan(p)] >= known * (1 - 1e-12)).all()


def test_published_example():
    """Table of Benjamini & Hochberg (1995), section 3.2: four rejections at 5 %."""
    small = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p = np.array([*small, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000])
    assert (adjusted_p_values(p) <= 0.05).sum() == 4


def test_edges():
    assert np.isnan(adjusted_p_values(np.full((2, 2), np.nan))).all()
    assert adjusted_p_values(np.empty((0, 3))).shape == (0, 3)
    assert adjusted_p_values(np.array(0.03)) == 0.03
    p = np.array([0.01, np.nan, 1 + 1e-7], np.float32)
    np.testing.assert_allclose(adjusted_p_values(p), [0.02, np.nan, 1.0], rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="method is 'fdr'; give 'bh', 'by' or 'holm'"):
        adjusted_p_values(np.zeros(2), "fdr")
    with pytest.raises(ValueError, match="p_values must lie between 0 and 1, found 5"):
        adjusted_p_values(np.array([5.0]))
