"""CKME for vectors: for several variables at once, or for a circular variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.inputs.dates import CaseAxis
from xrecal.typing import FloatArray

from .base import Cases, Chosen, FitArrays, Method, NewCases, Parameter, Variables
from .ckme import CKME, as_choices

if TYPE_CHECKING:
    from xrecal.arrays.ckme.vector_ckme import Vectors

SCALE = "variable_spread"
"""Name of the parameter with the spread of each variable's members. The method divides the
variable by this spread."""


@dataclass(frozen=True)
class VectorCKME(Method):
    """:class:`CKME` of vectors; ``fit`` makes it if you pass ``jointly`` or ``period``.

    A forecast has the members of the first variable, then the members of the second, and so on.
    Observations belong to the variable to recalibrate; ``partners`` are observations of all other
    variables.

    Parameters
    ----------
    method : CKME
        CKME with all other settings. If its loss is "crps", cross-validation minimises the energy
        score instead.
    names : tuple of str
        Names of the variables.
    periods : tuple of float or None
        Periods of the variables, None for variables that are not circular.
    units : tuple of str or None
        Units of the variables.
    own : int
        Position of the variable to recalibrate.
    """

    method: CKME
    names: tuple[str, ...]
    periods: tuple[float | None, ...]
    units: tuple[str | None, ...]
    own: int = 0

    shares_members = True
    keeps_cases = True
    keeps_choices = True

    def __post_init__(self) -> None:
        if self.method.support == "auto":  # the only choice
            object.__setattr__(self, "method", replace(self.method, support="observations"))
        of = " and ".join(self.names)
        for name, value, why in (
            ("support", "observations", "members are observed vectors"),
            ("loss", "crps", "cross-validation minimises their energy score"),
            ("projection", "euclidean", "vectors have no order"),
        ):
            given = getattr(self.method, name)
            if given != value:
                raise ValueError(
                    f"CKME: {name}={given!r} is not for {of}: {why}; take {name}={value!r}"
                )

    @property
    def exchangeable(self) -> bool:  # type: ignore[override]
        """Setting ``exchangeable`` of the CKME."""
        return self.method.exchangeable

    @property
    def condition_on(self) -> str | tuple[str, ...] | None:
        """Setting ``condition_on`` of the CKME."""
        return self.method.condition_on

    @property
    def variables(self) -> Variables:
        """Variables that the method compares as vectors, and the variable to recalibrate."""
        return Variables(self.names, self.periods, self.units, self.own)

    @property
    def not_by_sums(self) -> str:
        """End of an error message about too many cases to compare one by one, with what to type."""
        return "vectors need; leave jointly and period out"

    def of_variable(self, place: int) -> VectorCKME:
        """Return the method for the variable at position ``place`` of the vector."""
        return replace(self, own=place)

    def columns(self, n: int) -> int:
        """Return the number of columns of the largest matrices; see :meth:`CKME.columns`."""
        return self.method.columns(n)

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters of the CKME, and the spread by which each variable is divided."""
        of_ckme = self.method.parameters(n_features).items()
        parameters = {k: replace(p, in_units_of_variable=False) for k, p in of_ckme}
        parameters[SCALE] = Parameter(
            "spread of the members of each variable",
            dims={"vector_component": len(self.names)},
            labels=self.names,
        )
        return parameters

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method and a remark or None; see :meth:`CKME.check` for errors."""
        _, note = self.method.check(axis, n_cases)
        return self, note

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit a CKME of vectors; see :func:`xrecal.arrays.fit_vector_ckme`."""
        from xrecal.arrays.ckme.vector_ckme import fit_vector_ckme

        given = self._arguments(cases, min_samples)
        fitted, scale = fit_vector_ckme(**given, choices=as_choices(choices))
        return {**fitted._asdict(), SCALE: scale}

    @property
    def choice_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the choices; see :attr:`CKME.choice_sizes`."""
        return self.method.choice_sizes

    @property
    def evidence_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the losses; see :attr:`CKME.evidence_sizes`."""
        return self.method.evidence_sizes

    def together(self, choices: FitArrays, in_pool: bool = False) -> FitArrays:
        """Return joint choices; see :meth:`CKME.together`."""
        return self.method.together(choices, in_pool)

    def with_own(
        self, together: FitArrays, own: FitArrays, share: FloatArray, in_pool: bool = False
    ) -> FitArrays:
        """Return choices that mix joint and own choices; see :meth:`CKME.with_own`."""
        return self.method.with_own(together, own, share, in_pool)

    def choose_locations(self, cases: Cases, min_samples: int) -> FitArrays:
        """Search for choices; see :func:`xrecal.arrays.choose_vector_ckme`."""
        from xrecal.arrays.ckme.vector_ckme import choose_vector_ckme

        return choose_vector_ckme(**self._arguments(cases, min_samples))._asdict()

    def _arguments(self, cases: Cases, min_samples: int) -> dict[str, Any]:
        """Return the cases and settings as arguments of ``xrecal.arrays``."""
        assert cases.forecasts is not None
        observed = [*cases.partners]
        observed.insert(self.own, cases.observations)
        given = self.method.array_arguments(cases, min_samples)
        del given["squared"]
        vectors = self._vectors(cases.forecasts.loc, cases.forecasts.weights)
        return given | {
            "cases": vectors,
            "observations": np.stack(observed, axis=-1),
            "periods": self.periods,
            "settings": given["settings"]._replace(loss="energy"),
        }

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return weighted ensembles; see :func:`xrecal.arrays.vector_ckme_weights`."""
        from xrecal.arrays.ckme.embedding import complete_fit
        from xrecal.arrays.ckme.vector_ckme import vector_ckme_weights

        assert cases.forecasts is not None
        features = cases.covariates.features(self.covariates)
        weights = vector_ckme_weights(
            self._vectors(new.forecasts.loc, new.forecasts.weights),
            self._vectors(cases.forecasts.loc, cases.forecasts.weights),
            np.isfinite(cases.observations),
            complete_fit(fitted, features.circular.size),
            fitted[SCALE],
            self.periods,
            kernel=self.method.kernel,
            projection=self.method.projection,
            features=features,
            new_features=new.covariates.features(self.covariates, cases.covariates),
            days=cases.axis.days,
        )
        period = self.periods[self.own]
        if period is None:
            return Empirical(cases.observations, weights)
        from xrecal.arrays.distributions.circular import Circular

        return Circular(cases.observations, weights, period)  # type: ignore[return-value]

    def _vectors(self, members: FloatArray, weights: FloatArray | None) -> Vectors:
        """Return ensembles of vectors in the form that ``xrecal.arrays`` takes."""
        from xrecal.arrays.ckme.vector_ckme import Vectors

        *lead, size = members.shape
        d = len(self.periods)
        return Vectors(members.reshape(*lead, d, size // d), weights)
