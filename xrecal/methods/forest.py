"""Forest: past errors with weights from the leaves of trees, for pools with many covariates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from xrecal.arrays.distributions.forms import Distribution, Empirical, find_bounds, moments
from xrecal.arrays.rows import whole_number
from xrecal.inputs.covariates import SEASON
from xrecal.typing import FloatArray, IntArray

from .base import (
    ANY,
    Bounds,
    Cases,
    Chosen,
    FitArrays,
    Method,
    NewCases,
    Parameter,
    Trial,
    count_cases,
)
from .settings import check_bounds, check_names

if TYPE_CHECKING:
    from xrecal.arrays.baselines.forest import Predictors

FEWEST_COVARIATES, FEWEST_CASES = 5, 200
"""``forest="auto"`` makes a forest with at least this many covariates besides the season, and at
least this many cases."""

TRIED_TREES = 50
"""Largest number of trees of a forest that forecasts held-out cases; a fit grows a dozen such
forests."""


def grows(covariates: tuple[str, ...], n_cases: int) -> bool:
    """Return whether ``forest="auto"`` makes a forest with these covariates and cases.

    Raises ImportError if the fit needs scikit-learn and cannot import it.
    """
    enough = len({*covariates} - {SEASON}) >= FEWEST_COVARIATES and n_cases >= FEWEST_CASES
    if enough:
        from xrecal.arrays.baselines.forest import require_forest

        require_forest()
    return enough


@dataclass(frozen=True)
class Forest(Method):
    """Past errors that get their weights from the leaves of a regression forest.

    This method is a component of a :class:`LinearPool` with many covariates. An error is the
    observation minus the mean of an EMOS with the season, divided by the spread of this EMOS. The
    more trees in which the case of an error shares a leaf with the new forecast, the larger is the
    weight of the error [1]_. An update adds cases to the leaves, but does not change the trees.

    Parameters
    ----------
    bounds : "auto", (lower, upper) or None
        Bounds of the variable, as in :class:`CKME`.
    condition_on : str or tuple of str, optional
        Covariates by which trees split the cases, in addition to mean and spread of the forecast.
    n_trees : int
        Number of trees.
    seed : int
        Seed of the random choices in growing trees; all places have the same seed.

    References
    ----------
    .. [1] Meinshausen (2006), Quantile regression forests.
       https://www.jmlr.org/papers/v7/meinshausen06a.html
    """

    bounds: Bounds = "auto"
    condition_on: str | tuple[str, ...] | None = None
    n_trees: int = 200
    seed: int = 0

    keeps_cases = True
    keeps_choices = True

    def __post_init__(self) -> None:
        check_bounds(self)
        check_names(self)
        whole_number("n_trees", self.n_trees, 1)
        whole_number("seed", self.seed, 0)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: coefficients of the centre, bounds, errors of cases, and trees."""
        from xrecal.arrays.baselines.forest import MOST, most_nodes

        n_season = 2 * (SEASON in self.covariates)
        dims: dict[str, int | Callable[[int], int]] = {"tree": self.n_trees, "node": most_nodes}
        of_tree = partial(Parameter, dtype=np.int16, dims=dims)
        return {
            "centre": Parameter(
                "coefficients of centre and spread", dims={"coefficient": 4 + 2 * n_season}
            ),
            "lower": Parameter("lower bound", True, within=ANY),
            "upper": Parameter("upper bound", True, within=ANY),
            "error": Parameter(
                "error of each case in units of the spread", dims={"calibration": -1}, within=ANY
            ),
            "predictor": of_tree(
                "predictor by which a node splits, -1 for a leaf", within=(-1, 1 + n_features)
            ),
            "threshold": Parameter(
                "largest value of the predictor in the left child", dtype=np.float32, dims=dims
            ),
            "right": of_tree("right child; the left child follows the node", within=(-1, MOST)),
        }

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit centres and trees; see :func:`xrecal.arrays.baselines.forest.fit_forest`."""
        from xrecal.arrays.baselines.forest import fit_forest

        fitted = fit_forest(
            self._predictors(cases),
            cases.observations,
            find_bounds(cases.observations, self.bounds)[:2],
            cases.axis.steps(cases.observations.shape[1]),
            n_trees=self.n_trees,
            seed=self.seed,
            min_samples=min_samples,
        )
        return {**count_cases(cases, min_samples), **fitted._asdict()}

    def try_locations(
        self, cases: Cases, min_samples: int, refits: Callable[[Method], FloatArray]
    ) -> Iterable[Trial]:
        """Return a trial whose forecasts of held-out cases come from forests with fewer trees.

        Fewer trees save time, but make these forecasts slightly worse.
        """
        few = replace(self, n_trees=min(self.n_trees, TRIED_TREES))
        return [Trial({}, self.fit_locations(cases, min_samples), refits(few))]

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Return the errors of the added cases around the centre that the fit has learned."""
        from xrecal.arrays.baselines.forest import errors_of

        cases, bounds = self._predictors(added), (fitted["lower"], fitted["upper"])
        return {"error": errors_of(cases, added.observations, fitted["centre"], bounds)}

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return past errors as members, weighted by the leaves that cases share with forecasts."""
        from xrecal.arrays.baselines.forest import FittedForest, forest_forecasts

        members, weights = forest_forecasts(
            self._predictors(new, cases),
            self._predictors(cases),
            cases.observations,
            FittedForest(*(fitted[name] for name in FittedForest._fields)),
        )
        dtype = new.forecasts.loc.dtype
        return Empirical(members.astype(dtype), weights.astype(dtype))

    def _predictors(self, of: Cases | NewCases, record: Cases | None = None) -> Predictors:
        """Return the numbers by which trees split cases or forecasts.

        The past cases in ``record`` define which values of the covariates are plausible.
        """
        from xrecal.arrays.baselines.forest import Predictors

        assert of.forecasts is not None
        known = None if record is None else record.covariates
        parts = [
            of.covariates.features([n for n in self.covariates if (n == SEASON) is wanted], known)
            for wanted in (True, False)
        ]
        return Predictors(*moments(of.forecasts), *(part.values for part in parts))
