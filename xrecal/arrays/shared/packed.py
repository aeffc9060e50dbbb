"""A shared fit as arrays of sizes that are known before it, and back, bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .cells import OUTER, QUANTILES
from .coordinates import POINTS, Coordinates
from .field import MAX_RANK, Field, FieldSettings
from .landmarks import Landmarks
from .law import SharedLaw
from .passes import Shared
from .places import Corrections, Places, PlaceSettings, Pooled
from .sums import Sums, no_cases

GRID = QUANTILES + 2 * OUTER + 2
"""Thresholds of errors at most."""

Packed = Mapping[str, npt.NDArray[Any]]


class Sizes(NamedTuple):
    """Numbers that decide the shapes of all arrays."""

    places: int
    features: int
    """Of places"""
    covariates: int
    """Of cases"""
    landmarks: int
    """At most"""

    @property
    def of_dims(self) -> dict[str, int]:
        """Size of each dimension."""
        features = self.features + self.covariates
        return {
            "place": self.places,
            "place_feature": self.features,
            "law": 2,
            "feature": features,
            "landmark": self.landmarks,
            "landmark_": self.landmarks,
            "axis": POINTS - 1 + features,
            "shape_threshold": POINTS,
            "threshold": GRID,
            "cell": GRID - 1,
            "field": 2,
            "field_landmark": min(MAX_RANK, self.places),
            "field_landmark_": min(MAX_RANK, self.places),
            "field_setting": len(FieldSettings._fields),
            "coefficient": len(Pooled._fields) + 3,
            "place_setting": 3,
            "kind_of_threshold": 2,
            "seen_value": 2 + self.covariates,
            "end": 2,
            "correction": len(Corrections._fields),
            "place_sum": 7,
        }


class Entry(NamedTuple):
    """An array of the state."""

    long_name: str
    dims: tuple[str, ...]
    of: Callable[[Shared], npt.ArrayLike]
    for_updates: bool = False
    whole: bool = False
    """Whether numbers are counts"""


def _each(laws: Callable[[Shared], tuple[Any, Any]], name: str) -> Callable[[Shared], Any]:
    return lambda fit: [getattr(one, name) for one in laws(fit)]


def _fields(fit: Shared) -> tuple[Field, Field]:
    return fit.places.centre, fit.places.spread


def _landmarks(laws: Callable[[Shared], tuple[Any, Any]], name: str) -> Callable[[Shared], Any]:
    return lambda fit: [getattr(one.landmarks, name) for one in laws(fit)]


def _coordinates(name: str) -> Callable[[Shared], Any]:
    return _each(lambda fit: fit.coordinates, name)


def _law(name: str) -> Callable[[Shared], Any]:
    return _each(lambda fit: fit.laws, name)


def _sum(name: str) -> Callable[[Shared], Any]:
    return _each(lambda fit: fit.sums, name)


_OF_LANDMARK, _OF_FIELD = ("law", "landmark"), ("field", "field_landmark")
_SQUARE = (*_OF_LANDMARK, "landmark_")

ENTRIES: dict[str, Entry] = {
    "regression": Entry(
        "regression that all places share: a, b, c, d, level, width, kurtosis",
        ("coefficient",),
        lambda fit: [*fit.pooled.coefficients, *fit.pooled[1:]],
    ),
    "corrections": Entry(
        "correction of the regression at each place: centre, slope, log factor of the scale, doubt",
        ("correction", "place"),
        lambda fit: fit.places.local,
    ),
    "features": Entry(
        "features of each place", ("place", "place_feature"), lambda fit: fit.features
    ),
    "place_settings": Entry(
        "mean slope, variance of slopes, inflation of variances",
        ("place_setting",),
        lambda fit: [
            fit.places.slope,
            fit.places.settings.slope_variance,
            fit.places.settings.inflation,
        ],
    ),
    "field_middle": Entry(
        "middle of each feature", ("field", "place_feature"), _each(_fields, "middle")
    ),
    "field_precision": Entry(
        "weight of squared differences of each feature",
        ("field", "place_feature"),
        _each(_fields, "precision"),
    ),
    "field_points": Entry(
        "places that stand for all, scaled",
        (*_OF_FIELD, "place_feature"),
        _landmarks(_fields, "points"),
    ),
    "field_root": Entry(
        "root of their similarities", (*_OF_FIELD, "field_landmark_"), _landmarks(_fields, "root")
    ),
    "field_factors": Entry(
        "factors of the fields of mean error and spread", _OF_FIELD, _each(_fields, "factors")
    ),
    "field_constant": Entry("constant of each field", ("field",), _each(_fields, "constant")),
    "field_settings": Entry(
        "fineness, signal and nugget of each field",
        ("field", "field_setting"),
        _each(_fields, "settings"),
    ),
    "field_rank": Entry(
        "number of such places", ("field",), _landmarks(_fields, "rank"), whole=True
    ),
    "shape_grid": Entry(
        "thresholds at which shapes of forecasts are compared",
        ("law", "shape_threshold"),
        _coordinates("grid"),
    ),
    "shape_bandwidth": Entry("bandwidth of shapes", ("law",), _coordinates("bandwidth")),
    "feature_middle": Entry(
        "middle of each feature and covariate", ("law", "feature"), _coordinates("middle")
    ),
    "feature_precision": Entry(
        "weight of squared differences of each feature and covariate, 0 where it does not count",
        ("law", "feature"),
        _coordinates("precision"),
    ),
    "landmarks": Entry(
        "cases that stand for all, scaled",
        (*_OF_LANDMARK, "axis"),
        _landmarks(lambda fit: fit.laws, "points"),
    ),
    "rank": Entry(
        "number of such cases", ("law",), _landmarks(lambda fit: fit.laws, "rank"), whole=True
    ),
    "errors": Entry("thresholds of standardised errors", ("law", "threshold"), _law("grid")),
    "n_thresholds": Entry(
        "number of these thresholds, and of those of shapes",
        ("law", "kind_of_threshold"),
        lambda fit: [
            [law.grid.size, shapes.grid.size]
            for law, shapes in zip(fit.laws, fit.coordinates, strict=True)
        ],
        whole=True,
    ),
    "factors": Entry(
        "factors of similarities in the law of errors", (*_OF_LANDMARK, "cell"), _law("factors")
    ),
    "share": Entry("factors of similarities in the weight of the law", _OF_LANDMARK, _law("share")),
    "average": Entry("law of the errors of all cases", ("law", "cell"), _law("average")),
    "ridge": Entry("ridge of each law", ("law",), _law("ridge")),
    "seen": Entry(
        "range of ensemble means, standard deviations and covariates",
        ("seen_value", "end"),
        lambda fit: fit.seen,
    ),
    "root": Entry(
        "root of the similarities of landmarks",
        _SQUARE,
        _landmarks(lambda fit: fit.laws, "root"),
        for_updates=True,
    ),
    "sum_square": Entry("sum of z z^T over cases", _SQUARE, _sum("square"), for_updates=True),
    "sum_cross": Entry(
        "sum of z a^T over cases", (*_OF_LANDMARK, "cell"), _sum("cross"), for_updates=True
    ),
    "sum_total": Entry("sum of z over cases", _OF_LANDMARK, _sum("total"), for_updates=True),
    "sum_below": Entry("sum of a over cases", ("law", "cell"), _sum("below"), for_updates=True),
    "sum_weight": Entry("number of cases", ("law",), _sum("weight"), for_updates=True),
    "place_sums": Entry(
        "sums over the cases of each place",
        ("place_sum", "place"),
        lambda fit: fit.place_sums,
        for_updates=True,
    ),
    "at_fit": Entry(
        "corrections around which the sums of the laws are",
        ("law", "correction", "place"),
        lambda fit: fit.at_fit,
        for_updates=True,
    ),
}


def pack(fit: Shared, sizes: Sizes) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a fit by name, each of the sizes of its dimensions, zeros where there is less."""
    packed = {}
    for name, entry in ENTRIES.items():
        whole = _empty(entry, sizes)
        values = entry.of(fit)
        # Of two laws or fields, one may have fewer landmarks than the other.
        two = entry.dims[0] in ("law", "field")
        for at, value in enumerate(values) if two else [(..., values)]:  # type: ignore[arg-type]
            array = np.asarray(value)
            own = tuple(slice(size) for size in array.shape)
            whole[(at, *own) if two else own] = array
        packed[name] = whole
    return packed


def nothing(sizes: Sizes) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a fit that learned nothing: NaN, and counts of 0."""
    packed = {name: _empty(entry, sizes) for name, entry in ENTRIES.items()}
    for array in packed.values():
        if array.dtype.kind == "f":
            array[...] = np.nan
    return packed


def _empty(entry: Entry, sizes: Sizes) -> npt.NDArray[Any]:
    shape = tuple(sizes.of_dims[d] for d in entry.dims)
    return np.zeros(shape, np.int32 if entry.whole else np.float64)


def unpack(packed: Packed) -> Shared:
    """The fit of which these are the arrays.

    Arrays that updates alone need may be lacking: sums are then of no case.
    """
    slope, slope_variance, inflation = packed["place_settings"]
    fields = [_field(packed, k) for k in range(2)]
    laws = [_unpacked_law(packed, k) for k in range(2)]
    settings = PlaceSettings(
        float(slope_variance), fields[0].settings, fields[1].settings, float(inflation)
    )
    local, at_fit = Corrections(*packed["corrections"]), None
    if "at_fit" in packed:
        at_fit = (Corrections(*packed["at_fit"][0]), Corrections(*packed["at_fit"][1]))
    odd = np.zeros(local.centre.size, np.bool_)
    places = Places(local, float(slope), fields[0], fields[1], odd, settings)
    coefficients, (level, width, kurtosis) = packed["regression"][:4], packed["regression"][4:]
    return Shared(
        Pooled(coefficients, float(level), float(width), float(kurtosis)),
        places,
        packed["features"],
        at_fit or (local, local),
        (_unpacked_coordinates(packed, 0), _unpacked_coordinates(packed, 1)),
        (laws[0], laws[1]),
        (_unpacked_sums(packed, 0), _unpacked_sums(packed, 1)),
        packed.get("place_sums", np.zeros((7, local.centre.size))),
        packed["seen"],
    )


def _field(packed: Packed, k: int) -> Field:
    r = int(packed["field_rank"][k])
    fineness, signal, nugget = map(float, packed["field_settings"][k])
    return Field(
        packed["field_middle"][k],
        packed["field_precision"][k],
        Landmarks(packed["field_points"][k, :r], _square(packed["field_root"][k], r)),
        packed["field_factors"][k, :r],
        float(packed["field_constant"][k]),
        FieldSettings(fineness, signal, nugget),
    )


def _square(root: FloatArray, r: int) -> FloatArray:
    return np.ascontiguousarray(root[:r, :r])


def _unpacked_coordinates(packed: Packed, k: int) -> Coordinates:
    return Coordinates(
        packed["shape_grid"][k, : packed["n_thresholds"][k, 1]],
        float(packed["shape_bandwidth"][k]),
        packed["feature_middle"][k],
        packed["feature_precision"][k],
    )


def _unpacked_law(packed: Packed, k: int) -> SharedLaw:
    r, (n, n_shapes) = int(packed["rank"][k]), packed["n_thresholds"][k]
    axes = n_shapes - 1 + packed["feature_middle"].shape[-1]
    root = _square(packed["root"][k], r) if "root" in packed else np.eye(r)
    return SharedLaw(
        Landmarks(np.ascontiguousarray(packed["landmarks"][k, :r, :axes]), root),
        packed["errors"][k, :n],
        np.ascontiguousarray(packed["factors"][k, :r, : n - 1]),
        packed["share"][k, :r],
        packed["average"][k, : n - 1],
        float(packed["ridge"][k]),
    )


def _unpacked_sums(packed: Packed, k: int) -> Sums:
    r, n = int(packed["rank"][k]), int(packed["n_thresholds"][k, 0]) - 1
    if "sum_square" not in packed:
        return no_cases(r, n)
    return Sums(
        packed["sum_square"][k, :r, :r],
        packed["sum_cross"][k, :r, :n],
        packed["sum_total"][k, :r],
        packed["sum_below"][k, :n],
        np.asarray(packed["sum_weight"][k]),
    )
