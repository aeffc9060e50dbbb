"""Conversion of a shared fit to arrays of fixed sizes, and back, without any loss.

A fit has two laws (distributions of errors): one for places with a record, and one for places
without. It also has two fields (smooth functions of the features of a place): one for the mean
error, and one for the spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .cells import OUTER, QUANTILES
from .coordinates import POINTS, Coordinates
from .field import MAX_RANK, Field, FieldSettings
from .landmarks import Landmarks
from .law import SharedLaw
from .passes import Shared
from .places import SUMS, Corrections, Places, PlaceSettings
from .regression import Pooled
from .sums import Sums, no_cases

GRID = QUANTILES + 2 * OUTER + 2
"""Largest number of thresholds of errors."""

Packed = Mapping[str, npt.NDArray[Any]]


class Sizes(NamedTuple):
    """Numbers that determine the shapes of all arrays."""

    places: int
    features: int
    """Number of features of a place"""
    covariates: int
    """Number of covariates of a case"""
    landmarks: int
    """Largest number of landmarks"""

    @property
    def of_dims(self) -> dict[str, int]:
        """Return the size of each dimension."""
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
            "place_sum": len(SUMS),
        }


class Entry(NamedTuple):
    """One array of a stored fit."""

    long_name: str
    dims: tuple[str, ...]
    of: str | Callable[[Shared], npt.ArrayLike]
    """Function that returns the values of a fit, or names of the attributes that lead from
    :class:`.passes.Shared` to these values. If the names begin with ``laws``, ``coordinates``,
    ``sums`` or ``fields``, the values are two arrays"""
    for_updates: bool = False
    whole: bool = False
    """True if the values are whole numbers"""

    def values(self, fit: Shared) -> Any:
        """Return the values of a fit: an array, or a list of two arrays for two laws or fields."""
        if not isinstance(self.of, str):
            return self.of(fit)
        first, _, rest = self.of.partition(".")
        two = (fit.places.centre, fit.places.spread) if first == "fields" else getattr(fit, first)
        if first in ("laws", "coordinates", "sums", "fields"):
            return [attrgetter(rest)(one) for one in two]
        return attrgetter(self.of)(fit)

    @property
    def is_of_two(self) -> bool:
        """Return True if the entry has two arrays: one per law of errors, or one per field."""
        return self.dims[0] in ("law", "field")


def _place_settings(fit: Shared) -> list[float]:
    settings = fit.places.settings
    return [fit.places.slope, settings.slope_variance, settings.inflation]


def _n_thresholds(fit: Shared) -> list[list[int]]:
    both = zip(fit.laws, fit.coordinates, strict=True)
    return [[law.grid.size, shapes.grid.size] for law, shapes in both]


_OF_LANDMARK, _OF_FIELD = ("law", "landmark"), ("field", "field_landmark")
_SQUARE = (*_OF_LANDMARK, "landmark_")

ENTRIES: dict[str, Entry] = {
    "regression": Entry(
        "regression that all places share: a, b, c, d, level, width, kurtosis, mean of 1 / number "
        "of members, mean and variance of the variances of past ensembles",
        ("coefficient",),
        lambda fit: [*fit.pooled.coefficients, *fit.pooled[1:]],
    ),
    "corrections": Entry(
        "correction at each place: centre, slope, log factor of scale, standard error of centre",
        ("correction", "place"),
        "places.local",
    ),
    "features": Entry("features of each place", ("place", "place_feature"), "features"),
    "place_settings": Entry(
        "mean slope, variance of slopes, inflation of variances",
        ("place_setting",),
        _place_settings,
    ),
    "field_middle": Entry("middle of each feature", ("field", "place_feature"), "fields.middle"),
    "field_precision": Entry(
        "weight of squared differences of each feature",
        ("field", "place_feature"),
        "fields.precision",
    ),
    "field_points": Entry(
        "scaled features of the landmark places",
        (*_OF_FIELD, "place_feature"),
        "fields.landmarks.points",
    ),
    "field_root": Entry(
        "Cholesky factor of the similarities of landmark places",
        (*_OF_FIELD, "field_landmark_"),
        "fields.landmarks.root",
    ),
    "field_factors": Entry(
        "factors of the fields of mean error and spread", _OF_FIELD, "fields.factors"
    ),
    "field_constant": Entry("constant of each field", ("field",), "fields.constant"),
    "field_settings": Entry(
        "fineness, signal and nugget of each field", ("field", "field_setting"), "fields.settings"
    ),
    "field_rank": Entry(
        "number of landmark places", ("field",), "fields.landmarks.rank", whole=True
    ),
    "shape_grid": Entry(
        "thresholds at which shapes of forecasts are compared",
        ("law", "shape_threshold"),
        "coordinates.grid",
    ),
    "shape_bandwidth": Entry("bandwidth of shapes", ("law",), "coordinates.bandwidth"),
    "feature_middle": Entry(
        "middle of each feature and covariate", ("law", "feature"), "coordinates.middle"
    ),
    "feature_precision": Entry(
        "weight of squared differences of each feature and covariate, 0 if not used",
        ("law", "feature"),
        "coordinates.precision",
    ),
    "landmarks": Entry(
        "coordinates of the landmarks", (*_OF_LANDMARK, "axis"), "laws.landmarks.points"
    ),
    "rank": Entry("number of landmarks", ("law",), "laws.landmarks.rank", whole=True),
    "errors": Entry("thresholds of standardised errors", ("law", "threshold"), "laws.grid"),
    "n_thresholds": Entry(
        "number of thresholds of errors, and of shapes",
        ("law", "kind_of_threshold"),
        _n_thresholds,
        whole=True,
    ),
    "factors": Entry(
        "factors of similarities in the law of errors", (*_OF_LANDMARK, "cell"), "laws.factors"
    ),
    "share": Entry("factors of similarities in the sum of weights", _OF_LANDMARK, "laws.share"),
    "average": Entry("law of the errors of all cases", ("law", "cell"), "laws.average"),
    "ridge": Entry("ridge of each law", ("law",), "laws.ridge"),
    "seen": Entry(
        "range of ensemble means, standard deviations and covariates", ("seen_value", "end"), "seen"
    ),
    "root": Entry(
        "Cholesky factor of the similarities of landmarks", _SQUARE, "laws.landmarks.root", True
    ),
    "sum_square": Entry("sum of z z^T over cases with vectors z", _SQUARE, "sums.square", True),
    "sum_cross": Entry(
        "sum of z a^T over cases with vectors z and cell averages a of the error",
        (*_OF_LANDMARK, "cell"),
        "sums.cross",
        True,
    ),
    "sum_total": Entry("sum of z over cases with vectors z", _OF_LANDMARK, "sums.total", True),
    "sum_below": Entry(
        "sum of a over cases with cell averages a of the error", ("law", "cell"), "sums.below", True
    ),
    "sum_weight": Entry("weight of all cases", ("law",), "sums.weight", True),
    "place_sums": Entry(
        "sums over the cases of each place", ("place_sum", "place"), "place_sums", True
    ),
    "at_fit": Entry(
        "corrections of the places when the sums over errors were made",
        ("law", "correction", "place"),
        "at_fit",
        True,
    ),
}


def pack(fit: Shared, sizes: Sizes) -> dict[str, npt.NDArray[Any]]:
    """Return named arrays of a fit; zeros fill up each array to the sizes of its dimensions."""
    packed = {}
    for name, entry in ENTRIES.items():
        whole, values = _empty(entry, sizes), entry.values(fit)
        for at, value in enumerate(values) if entry.is_of_two else [(..., values)]:
            array = np.asarray(value)
            own = tuple(slice(size) for size in array.shape)
            whole[(at, *own) if entry.is_of_two else own] = array
        packed[name] = whole
    return packed


def nothing(sizes: Sizes) -> dict[str, npt.NDArray[Any]]:
    """Return named arrays of an empty fit: numbers are NaN, and counts are 0."""
    packed = {name: _empty(entry, sizes) for name, entry in ENTRIES.items()}
    for array in packed.values():
        if array.dtype.kind == "f":
            array[...] = np.nan
    return packed


def _empty(entry: Entry, sizes: Sizes) -> npt.NDArray[Any]:
    shape = tuple(sizes.of_dims[d] for d in entry.dims)
    return np.zeros(shape, np.int32 if entry.whole else np.float64)


def unpack(packed: Packed) -> Shared:
    """Rebuild the fit from its arrays.

    If the arrays that only updates need are missing, the sums of the fit are empty.
    """
    one, other = _OfOne(packed, 0), _OfOne(packed, 1)
    slope, slope_variance, inflation = map(float, packed["place_settings"])
    fields, local = (one.field(), other.field()), Corrections(*packed["corrections"])
    settings = PlaceSettings(slope_variance, fields[0].settings, fields[1].settings, inflation)
    odd = np.zeros(local.centre.size, np.bool_)
    at_fit = tuple(Corrections(*at) for at in packed.get("at_fit", [local, local]))
    coefficients, numbers = packed["regression"][:4], map(float, packed["regression"][4:])
    return Shared(
        Pooled(coefficients, *numbers),
        Places(local, slope, *fields, odd, settings),
        packed["features"],
        (at_fit[0], at_fit[1]),
        (one.coordinates(), other.coordinates()),
        (one.law(), other.law()),
        (one.sums(), other.sums()),
        packed.get("place_sums", np.zeros((len(SUMS), local.centre.size))),
        packed["seen"],
    )


class _OfOne:
    """Arrays of one of two laws, or of one of two fields, cut to the sizes of this law or field."""

    def __init__(self, packed: Packed, k: int) -> None:
        self.packed, self.k = packed, k
        self.rank, (n, n_shapes) = int(packed["rank"][k]), packed["n_thresholds"][k].tolist()
        axes = n_shapes - 1 + packed["feature_middle"].shape[-1]
        rank, of_field = self.rank, int(packed["field_rank"][k])
        self.used = {
            "landmark": rank, "landmark_": rank, "threshold": n, "cell": n - 1, "axis": axes,
            "shape_threshold": n_shapes, "field_landmark": of_field, "field_landmark_": of_field,
        }  # fmt: skip

    def array(self, name: str) -> Any:
        """Return the array with this name, or a float if the array has one number only."""
        used = tuple(slice(self.used.get(d)) for d in ENTRIES[name].dims[1:])
        array = self.packed[name][self.k][used]
        return np.ascontiguousarray(array) if used else float(array)

    def arrays(self, *names: str) -> list[Any]:
        """Return the arrays with these names."""
        return [self.array(name) for name in names]

    def field(self) -> Field:
        """Rebuild the field, a smooth function of the features of places."""
        middle, precision = self.arrays("field_middle", "field_precision")
        landmarks = Landmarks(*self.arrays("field_points", "field_root"))
        factors, constant, settings = self.arrays(
            "field_factors", "field_constant", "field_settings"
        )
        return Field(
            middle, precision, landmarks, factors, constant, FieldSettings(*settings.tolist())
        )

    def coordinates(self) -> Coordinates:
        """Rebuild the coordinates of shapes and features."""
        return Coordinates(
            *self.arrays("shape_grid", "shape_bandwidth", "feature_middle", "feature_precision")
        )

    def law(self) -> SharedLaw:
        """Rebuild the law of errors.

        If the Cholesky factor ``root`` is not stored, the law gets a matrix of zeros and ones
        instead, because forecasts do not need this factor.
        """
        root = self.array("root") if "root" in self.packed else np.eye(self.rank)
        landmarks = Landmarks(self.array("landmarks"), root)
        return SharedLaw(landmarks, *self.arrays("errors", "factors", "share", "average", "ridge"))

    def sums(self) -> Sums:
        """Rebuild the sums over cases; if they are not stored, return sums over no case."""
        if "sum_square" not in self.packed:
            return no_cases(self.rank, self.used["cell"])
        square, cross, total = self.arrays("sum_square", "sum_cross", "sum_total")
        return Sums(
            square, cross, total, self.array("sum_below"), np.asarray(self.array("sum_weight"))
        )
