"""``.recal.plot``: doors to figures of forecasts. Needs matplotlib, so it is imported when used."""

from __future__ import annotations

from typing import NoReturn

from xrecal.methods.doors import Accessor, door
from xrecal.plot import forecasts


class Plots(Accessor):
    """``.recal.plot``: each method scores the forecasts and draws the result on Axes."""

    _typed_as = "recal.plot"

    def __repr__(self) -> str:
        return f"<figures of forecasts: {self._doors()}>"

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Say which figures there are."""
        raise TypeError(f"say which figure, as in .recal.plot.fan(observations): {self!r}")

    fan = door(forecasts.fan)
    cdf = door(forecasts.cdf)
    density = door(forecasts.density)

    pit = door(forecasts.pit)
    rank_histogram = door(forecasts.rank_histogram)
    reliability = door(forecasts.reliability)
    quantile_reliability = door(forecasts.quantile_reliability)
    roc = door(forecasts.roc)
    performance = door(forecasts.performance)
    coverage = door(forecasts.coverage)
    spread_skill = door(forecasts.spread_skill)

    monitor = door(forecasts.monitor)
    skill_by_lead = door(forecasts.skill_by_lead)
    skill_map = door(forecasts.skill_map)
    tercile_map = door(forecasts.tercile_map)
    p_value_map = door(forecasts.p_value_map)
    ridge_curve = door(forecasts.ridge_curve)
