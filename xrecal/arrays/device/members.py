"""Members in a random order of each forecast; see :mod:`xrecal.arrays.distributions.members`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.distributions.members import shuffled_members as shuffled

from .namespace import doubled, indices, take_along

__all__ = ["shuffled_members"]


def shuffled_members(members: Any, seed: int, locations: Any, cases: Any) -> Any:
    """See :func:`xrecal.arrays.shuffled_members`.

    The order follows from the numbers of location and case alone: it is made on the host, and
    members are put into it where they are.
    """
    xp, shape = namespace(members), tuple(members.shape)
    places = np.broadcast_to(np.arange(shape[-1], dtype=np.float64), shape)
    order = shuffled(places, seed, to_host(locations), to_host(cases))
    return take_along(xp, doubled(xp, members), indices(xp, order))
