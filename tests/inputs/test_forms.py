import re

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from xrecal.arrays.distributions.missing import level_masses
from xrecal.inputs.forms import read_forms


def positive(*dims, **kwargs):
    return abs(random(*dims, **kwargs)) + 0.1


def only(obj, member_dim=None):
    (form,) = read_forms(obj, member_dim).values()
    return form


def kinds(obj, member_dim=None):
    return {name: form.kind for name, form in read_forms(obj, member_dim).items()}


def linked(**attrs):
    return xr.Dataset(
        {
            "t2m": random("time", "member").assign_attrs(ancillary_variables="quality odds"),
            "odds": positive("time", "member").assign_attrs(role="member_weight", **attrs),
            "quality": random("time"),
        }
    )


@pytest.mark.parametrize("member", ["member", "number", "realization", "ensemble"])
def test_ensemble(member):
    da = random("time", member, "lat", name=None)
    form = read_forms(da)[None]
    assert (form.kind, form.member_dim, form.dims) == ("ensemble", member, ("time", "lat"))
    assert form.loc is da
    assert form.scale is form.weights is None
    assert list(form.parts) == ["loc"]


def test_explicit_member_dimension_beats_levels_and_names():
    da = random("time", "quantile", "member", "x", quantile=[0.1, 0.2, 0.5, 0.9])
    for dim in ("member", "x"):
        assert (only(da, dim).kind, only(da, dim).member_dim) == ("ensemble", dim)
    assert (only(da, "quantile").kind, only(da, "quantile").member_dim) == ("quantile", "quantile")
    two = random("percentile", "quantile", quantile=[0.1, 0.2, 0.5, 0.9], percentile=[5, 50, 95])
    assert only(two, "percentile").member_dim == "percentile"


def test_weights_by_role_and_by_name():
    for dataset in (linked(), linked(units="1")):  # a role needs no missing unit
        assert kinds(dataset) == {"t2m": "weighted"}
        assert only(dataset).weights.identical(dataset["odds"])
    named = xr.Dataset({"t2m": random("member"), "t2m_weight": positive("time", "member")})
    form = only(named)
    assert (form.kind, form.dims) == ("weighted", ("time",))
    ens = xr.Dataset({"t2m": random("time", "x"), "t2m_weight": positive("time", "x")})
    assert kinds(ens, "x") == {"t2m": "weighted"}
    assert kinds(xrecal.weighted(random("time", "member"), positive("time", "member"))) == {
        "t2m": "weighted"
    }


@pytest.mark.parametrize(
    ("attrs", "dims", "expected"),
    [
        ({"units": "kg"}, ("time", "member"), {"snow": "ensemble", "snow_weight": "ensemble"}),
        ({}, ("time",), {"snow": "ensemble"}),
    ],
)
def test_weight_in_the_name_alone_decides_nothing(attrs, dims, expected):
    dataset = xr.Dataset(
        {"snow": random("time", "member"), "snow_weight": positive(*dims).assign_attrs(attrs)}
    )
    assert kinds(dataset) == expected
    mentioned = dataset.assign(snow=dataset["snow"].assign_attrs(ancillary_variables="snow_weight"))
    assert kinds(mentioned) == expected  # mentioned as ancillary, without the role


LEVELS = [
    ("quantile", [0.1, 0.2, 0.5, 0.9], [0.15, 0.2, 0.35, 0.3]),
    ("percentile", [10, 20, 50, 90], [0.15, 0.2, 0.35, 0.3]),
    ("quantile", [0.9, 0.1, 0.5, 0.2], [0.3, 0.15, 0.35, 0.2]),
    ("percentile", [90.0, 10.0, 50.0, 20.0], [0.3, 0.15, 0.35, 0.2]),
    ("quantile", [0.125, 0.375, 0.625, 0.875], [0.25] * 4),
    ("quantile", [0, 0.25, 0.75, 1], [0.125, 0.375, 0.375, 0.125]),
    ("quantile", [0.3], [1.0]),
]


@pytest.mark.parametrize(("dim", "levels", "masses"), LEVELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_levels_have_the_mass_between_the_midpoints(dim, levels, masses, dtype):
    da = random("time", dim, sizes={dim: len(levels)}, **{dim: levels}).astype(dtype)
    form = only(da)
    assert (form.kind, form.member_dim, form.dims) == ("quantile", dim, ("time",))
    found = level_masses(form.levels.to_numpy(), da.to_numpy())
    np.testing.assert_allclose(found, np.broadcast_to(masses, da.shape), rtol=1e-6)
    assert found.dtype == dtype


@pytest.mark.parametrize(("dim", "top"), [("quantile", 1), ("percentile", 100)])
@pytest.mark.parametrize(
    "levels",
    [
        [0.1, 0.1, 0.5, 0.9],
        [-1, 0.1, 0.5, 0.9],
        [0.1, 0.5, 0.9, 101],
        [0.1, np.nan, 0.5, 0.9],
        "abcd",
    ],
    ids=str,
)
def test_bad_levels(dim, top, levels):
    message = f"levels along '{dim}' of f must be different numbers from 0 to {top}, got"
    with pytest.raises(ValueError, match=message):
        read_forms(random("time", dim, sizes={dim: 4}, **{dim: list(levels)}), name="f")


def test_normal_distributions():
    single = xrecal.gaussian(random("time", "lat"), positive("time", "lat"))
    form = only(single)
    assert (form.name, form.kind, form.dims) == ("t2m", "normal", ("time", "lat"))
    assert all(part.sizes["component"] == 1 for part in form.parts.values())
    mixture = xrecal.gaussian(
        *(f("time", "component") for f in (random, positive)), positive("component")
    )
    form = only(mixture)
    assert (form.member_dim, form.dims) == ("component", ("time",))
    assert list(form.parts) == ["loc", "scale", "weights"]
    renamed = mixture.rename(component="x")
    assert only(renamed, "x").member_dim == "x"
    assert set(only(renamed).parts["loc"].dims) == {"time", "x", "component"}  # x is a location


def test_normal_parts_of_different_width():
    """One location, several scales: each part reaches over the components."""
    form = only(xrecal.gaussian(random("time"), positive("time", "component")))
    assert form.loc.sizes == {"time": 30, "component": 2}
    assert form.dims == ("time",)


def test_normal_does_not_take_another_quantity_for_its_weights():
    dataset = xrecal.gaussian(random("time", name="snow"), positive("time"))
    dataset["snow_weight"] = random("time", "member").assign_attrs(units="kg")
    assert kinds(dataset) == {"snow": "normal", "snow_weight": "ensemble"}
    assert read_forms(dataset)["snow"].weights is None


def test_member_dimension_of_an_ensemble_beside_normals():
    dataset = xrecal.gaussian(random("time", "component", name="p"), positive("time", "component"))
    dataset["t2m"] = random("time", "x")
    forms = read_forms(dataset, "x")
    assert {name: form.member_dim for name, form in forms.items()} == {"p": "component", "t2m": "x"}


def test_variables_without_members_are_no_forecasts():
    dataset = random("time", "member").to_dataset().assign(orography=random("lat"))
    assert kinds(dataset) == {"t2m": "ensemble"}


@pytest.mark.parametrize("dtype", ["int32", "bool", "object", "float16"])
@pytest.mark.parametrize("part", ["t2m", "odds", "t2m_loc", "t2m_scale"])
def test_other_types_are_refused_with_what_to_type(dtype, part):
    dataset = (
        linked() if part in ("t2m", "odds") else xrecal.gaussian(random("time"), positive("time"))
    )
    dataset[part] = dataset[part].astype(dtype).assign_attrs(dataset[part].attrs)
    with pytest.raises(
        TypeError,
        match=rf"hindcast\['{part}'\] has dtype {dtype}; recalibration needs float32 or float64: "
        rf"hindcast\['{part}'\].astype\('float64'\)",
    ):
        read_forms(dataset, name="hindcast")


ERRORS = [
    (random("time", "quantile"), None, "f has no levels along 'quantile'; add them as"),
    (
        random("time", "quantile", "member", quantile=[0.1, 0.2, 0.5, 0.9]),
        None,
        "f has members along 'member' and quantiles along 'quantile'; name",
    ),
    (random("time", "lat"), None, r"f has no member dimension; it has \['time', 'lat'\]\. Members"),
    (random("time", "lat"), None, "one of member, number, realization, .* or quantile, perc"),
    (random("member", "number"), None, r"several member dimensions, \['member', 'number'\]"),
    (random("time", "member"), "x", r"f has no dimension 'x' \(member_dim\); it has \['time', 'm"),
    (random("member", sizes={"member": 0}), None, "f has no members: its dimension 'member' has"),
    (random("time").to_dataset(), None, r"no variable of f is a forecast: \['t2m'\] have neither"),
    (
        linked(),
        "x",
        r"no variable of f has the dimension 'x' \(member_dim\); it has \['time', 'mem",
    ),
    (linked().rename(time="number"), None, r"several member dimensions, \['number', 'member'\]"),
]


@pytest.mark.parametrize(("obj", "member_dim", "message"), ERRORS)
def test_errors(obj, member_dim, message):
    with pytest.raises(ValueError, match=message):
        read_forms(obj, member_dim, name="f")


@pytest.mark.parametrize("obj", [np.zeros((3, 4)), [1.0], None])
def test_other_containers(obj):
    with pytest.raises(TypeError, match="f must be an xarray DataArray or Dataset, got"):
        read_forms(obj, name="f")


def every_form():
    return {
        "ensemble": random("time", "lat", "member").to_dataset(),
        "weighted": linked(),
        "quantile": random("time", "quantile", quantile=[0.9, 0.2, 0.5, 0.1]).to_dataset(),
        "normal": xrecal.gaussian(
            random("time", "component"), positive("time", "component"), positive("component")
        ),
    }


@pytest.mark.parametrize("kind", ["ensemble", "weighted", "quantile", "normal"])
def test_reading_computes_and_changes_nothing(kind):
    dataset = every_form()[kind]
    before = dataset.copy(deep=True)
    assert only(freeze(dataset)).kind == kind
    assert dataset.identical(before)
    with forbid_compute():
        form = only(dataset.chunk({"time": 7}))
        whole = form.broadcast()
    assert form.kind == kind
    assert form.loc.chunks is not None
    for part in whole.parts.values():
        assert set(part.dims) == {*form.dims, form.member_dim}


def test_broadcast_keeps_the_dates_of_every_part():
    weights = positive("time", "member").assign_coords(valid_time=("time", np.arange(30)))
    form = only(xrecal.weighted(random("member"), weights))
    assert form.broadcast().loc.coords["valid_time"].dims == ("time",)


def test_results_have_the_users_order():
    whole = random("time", "member", "lat")
    assert only(whole).order(("quantile",)) == ["time", "quantile", "lat"]
    assert only(whole.transpose("member", "time", "lat")).order(()) == ["time", "lat"]
    shared = only(xrecal.weighted(random("member"), positive("time", "lat", "member")))
    assert shared.order(("quantile",)) == ["time", "lat", "quantile"]


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        (lambda x: xrecal.gaussian(x, x), "loc", "ndarray"),
        (lambda x: xrecal.gaussian(random("time"), 1.0), "scale", "float"),
        (lambda x: xrecal.weighted(x, x), "values", "ndarray"),
        (lambda x: xrecal.weighted(random("time", "member"), x), "weights", "ndarray"),
    ],
)
def test_forecasts_are_made_of_data_arrays(call, name, kind):
    with pytest.raises(TypeError) as caught:
        call(np.ones(3))
    assert str(caught.value) == (
        f"{name} must be an xarray DataArray, got {kind}; name its dimensions: "
        f'xr.DataArray({name}, dims=["time", ...])'
    )


def test_negative_standard_deviations_are_refused():
    scale = positive("time")
    scale[0] *= -1
    with pytest.raises(ValueError, match="scale holds 1 negative values; give standard"):
        xrecal.gaussian(random("time"), scale)


def test_weights_whose_sum_overflows():
    """Weights in memory are refused; lazy ones leave their forecast out, as infinite ones do."""
    values, weights = random("time", "member"), positive("time", "member")
    expected = xrecal.weighted(values, weights.copy()).recal.mean()["t2m"]
    infinite = weights.copy()
    infinite[3, 0] = np.inf
    weights[3] = 1e308
    text = (
        "the sum of weights along 'member' overflows in 1 of 30 forecasts; the largest weight is "
        "1e+308. Only ratios count: use weights / weights.max('member')"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        xrecal.weighted(values, weights)
    scaled = weights / weights.max("member")
    assert xrecal.weighted(values, scaled).recal.mean()["t2m"].notnull().all()
    for left_out in (weights.chunk(time=5), infinite):
        found = xrecal.weighted(values, left_out).recal.mean()["t2m"]
        np.testing.assert_array_equal(np.isnan(found), np.arange(30) == 3)
        np.testing.assert_array_equal(found[4:], expected[4:])
