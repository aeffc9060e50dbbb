"""Mean distances of members over all pairs: for any array library, O(n q m p) a location."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xrecal.arrays.dispatch import namespace

if TYPE_CHECKING:
    from xrecal.arrays.device.ensembles import Ensembles


def among(ensembles: Ensembles) -> Any:
    """Squared energy distances (L, n, n), by the definition."""
    return across(ensembles, ensembles)


def across(ones: Ensembles, others: Ensembles) -> Any:
    r"""Squared energy distances (L, n, q), :math:`2 E|X-Y| - E|X-X'| - E|Y-Y'|`."""
    xp = namespace(ones.points)
    n = ones.points.shape[1]
    mean = xp.concatenate([_apart(xp, _row(ones, i), others) for i in range(n)], axis=1)
    return 2 * mean - _spread(xp, ones)[:, :, None] - _spread(xp, others)[:, None, :]


def _row(ensembles: Ensembles, i: int) -> Ensembles:
    return ensembles._replace(
        points=ensembles.points[:, i : i + 1, :], mass=ensembles.mass[:, i : i + 1, :]
    )


def _apart(xp: Any, one: Ensembles, others: Ensembles) -> Any:
    """Mean distance of the members of one ensemble a location from those of all others."""
    distance = xp.abs(one.points[:, :, :, None] - others.points[:, :, None, :])
    each = xp.sum(distance * others.mass[:, :, None, :], axis=-1)
    return xp.sum(each * one.mass, axis=-1)[:, None, :]


def _spread(xp: Any, ensembles: Ensembles) -> Any:
    """Mean distance (L, n) of two members of an ensemble."""
    points, mass = ensembles.points, ensembles.mass
    each = xp.sum(xp.abs(points[..., None] - points[..., None, :]) * mass[..., None, :], axis=-1)
    return xp.sum(each * mass, axis=-1)
