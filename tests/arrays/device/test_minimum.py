import numpy as np
import pytest

from xrecal.arrays.ckme import minimum
from xrecal.arrays.device.minimum import golden_sections, parabolas

CURVES = [
    lambda x: (x + 0.13) ** 2,
    lambda x: abs(x - 0.31) + 0.1 * np.sin(9 * x),
    lambda x: -x,
    lambda x: x,
    lambda x: 0.0 * x,
    lambda x: -(x**2),
]


@pytest.mark.parametrize(
    ("many", "one"), [(golden_sections, minimum.golden_section), (parabolas, minimum.parabola)]
)
def test_each_location_ends_where_it_would_alone(many, one):
    def losses(at, points):
        return np.array([CURVES[i](x) for i, x in zip(at, points, strict=True)])

    start = np.zeros(len(CURVES))
    everywhere = np.arange(len(CURVES))
    found = many(losses, start, losses(everywhere, start), 0.5)
    expected = [one(curve, 0.0, curve(0.0), 0.5) for curve in CURVES]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
