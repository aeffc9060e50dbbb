import numpy as np
import xarray as xr

from benchmarks.beyond_sample import beyond_sample
from xrecal.fit.kinds import places_together
from xrecal.inputs.forms import read_forms


def test_a_place_costs_what_more_places_take_longer():
    """A fit of p places takes 10 + 2 p seconds; the first ones are those that a sample takes."""
    seconds, fitted = [0.0], []

    def fit(hindcast, observed):
        xr.testing.assert_equal(observed, hindcast.isel(member=0))
        seconds[0] += 10.0 + 2.0 * hindcast.sizes["cell"]
        fitted.append(hindcast["cell"].values)
        return len(fitted)

    dims = ("time", "member", "cell")
    hindcast = xr.DataArray(np.random.default_rng(0).normal(size=(3, 2, 30)), dims=dims)
    found = beyond_sample(fit, hindcast, hindcast.isel(member=0), "cell", 12, lambda: seconds[0])
    assert (found.each, found.choices, found.model) == (2.0, 10.0, 3)
    labelled = hindcast.assign_coords(cell=range(30))
    (form,) = read_forms(labelled, None, name="hindcast").values()
    order = places_together(form, ("cell",), "together").order
    assert [some.tolist() for some in fitted] == [order[:n].tolist() for n in (2, 12, 30)]
    xr.testing.assert_equal(found.hindcast, labelled.isel(cell=order))
