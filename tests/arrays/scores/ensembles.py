"""Weighted ensembles that Hypothesis draws."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

value = st.integers(-20, 20).map(lambda v: v / 4)


@st.composite
def cases(draw):
    """T observations, n shared members with ties, weights (T, n) with zeros."""
    t, n = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    weights = draw(arrays(np.float64, (t, n), elements=st.sampled_from([0.0, 0.3, 1.0, 2.5])))
    weights[:, 0] += 0.5
    y, members = (draw(arrays(np.float64, size, elements=value)) for size in (t, n))
    return y, members, weights
