"""Define ``.recal.plot``. This module needs matplotlib, so xrecal imports it only when used."""

from __future__ import annotations

from typing import NoReturn

from xrecal.plot.forecasts import Figures


class Plots(Figures):
    """``.recal.plot``: each method draws one figure of the forecasts on Axes."""

    _typed_as = "recal.plot"

    def __repr__(self) -> str:
        return f"<figures of forecasts: {self._doors()}>"

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise TypeError, because a figure must be named; the message lists the figures."""
        raise TypeError(f"say which figure, as in .recal.plot.fan(observations): {self!r}")
