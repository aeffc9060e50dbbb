"""Define ``.recal.plot``. xrecal imports this module only on use, because it needs matplotlib."""

from __future__ import annotations

from typing import NoReturn

from xrecal.plot.forecasts import Figures


class Plots(Figures):
    """``.recal.plot``: each method draws one figure of the forecasts on Axes."""

    _typed_as = "recal.plot"

    def __repr__(self) -> str:
        return f"<figures of forecasts: {self._doors()}>"

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise TypeError, because a call must name a figure; the message lists the figures."""
        raise TypeError(f"name a figure, as in .recal.plot.fan(observations): {self!r}")
