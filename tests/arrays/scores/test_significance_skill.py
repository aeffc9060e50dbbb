import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import diebold_mariano, skill_score, standard_error


def test_known_values(rng):
    r = rng.gamma(2, size=(3, 200))
    found = skill_score(0.8 * r, r)
    np.testing.assert_allclose(found.skill, 0.2)
    np.testing.assert_allclose(found.standard_error, 0.0, atol=1e-12)  # the ratio never varies
    assert (found.p_value < 1e-3).all()
    same = skill_score(r, r)
    np.testing.assert_array_equal(same.skill, 0.0)
    np.testing.assert_array_equal(same.p_value, 1.0)


def test_is_the_delta_method(rng):
    s, r = rng.gamma(2, size=500), rng.gamma(3, size=500)
    found = skill_score(s, r)
    ratio = s.mean() / r.mean()
    assert found.skill == pytest.approx(1 - ratio)
    assert found.standard_error == pytest.approx(standard_error(s - ratio * r) / r.mean())
    assert found.p_value == diebold_mariano(s - r)[1]


@given(arrays(np.float64, (2, 12), elements=st.floats(0.1, 10)), st.floats(0.1, 100))
def test_unit_does_not_matter(scores, factor):
    for one, other in zip(skill_score(*scores), skill_score(*(factor * scores)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert skill_score(*scores).skill <= 1


def test_without_a_reference_score_there_is_no_skill():
    r = np.zeros((2, 9))
    r[1] = -1.0
    found = skill_score(np.ones((2, 9)), r)
    assert np.isnan(found.skill).all()
    assert np.isnan(found.standard_error).all()
    np.testing.assert_array_equal(found.p_value, 0.0)  # the scores do differ
    few = skill_score(np.ones(2), np.full(2, 4.0))
    assert few.skill == 0.75
    assert np.isnan(few.standard_error)
    assert np.isnan(few.p_value)


def test_errors():
    with pytest.raises(
        ValueError, match=r"cases on the last axis.*found scores \(\), reference \(4,\)"
    ):
        skill_score(np.array(1.0), np.ones(4))
