"""The daily cycle: learn verified cases, issue forecasts, score and monitor earlier forecasts.

The model that issues the forecast of a start has learned all cases that had verified at that start,
and no later cases. This does not depend on the time of the run. So a cycle with killed, missed or
repeated runs leads to the same files as an undisturbed cycle.
``docs/cycle.md`` lists the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from xrecal.diagnostics.monitor import Restart
from xrecal.inputs.covariates import Given
from xrecal.methods.call_errors import explained
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.storage.paths import local_path
from xrecal.storage.stored import to_dataset

from .archive import Part, Parts, open_archive
from .cycle_folder import MAIL, MONITOR, SCORES, Folder, digest_of_file
from .cycle_scores import digest_of
from .files import Source
from .issued import Product
from .outcome import Date, Outcome
from .run import compute_all
from .turn import Settings, Turn, readable
from .watching import Watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Cycle:
    """The daily cycle of a recalibrated forecast, with all its files in a folder.

    Each run learns from the cases that have verified, issues a forecast for each new start, scores
    earlier forecasts, and monitors their calibration. You may repeat runs, and interrupt them at
    any time: the next run does the missing work. ``docs/cycle.md`` has the details.

    Parameters
    ----------
    folder : path
        Folder of the cycle; the first run makes it.
    model : path or Recalibrator, optional
        Model of the first fit. The cycle does not change this model. :meth:`report` needs no model.
    quantiles : sequence of float, optional
        Levels of the quantiles to issue. Give either ``quantiles`` or ``members``.
    members : int, optional
        Number of equally likely members to issue.
    variable, observed_variable : str, optional
        Name of the forecast variable (by default the cycle takes all forecast variables), and name
        of the variable with its observations.
    keep : int
        Number of models to keep. This number must exceed the number of starts within the longest
        lead.
    alpha, run_length, restart
        Settings of the monitor, as for ``forecast.recal.monitor``.
    compute : callable, optional
        Function that computes a list of Dask collections; by default ``dask.compute``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> fitted = hindcast.recal.fit(observations, xrecal.EMOS())
    >>> with TemporaryDirectory() as folder:
    ...     cycle = xrecal.Cycle(f"{folder}/out", fitted, quantiles=[0.1, 0.5, 0.9])
    ...     done = cycle.run(forecast[:2], observations[:51], now="2001-05-25")
    >>> done.issued
    ['20010515T000000', '20010525T000000']
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        model: str | PathLike[str] | Recalibrator | None = None,
        *,
        quantiles: Sequence[float] | None = None,
        members: int | None = None,
        variable: str | None = None,
        observed_variable: str | None = None,
        keep: int = 30,
        alpha: float = 0.01,
        run_length: int = 3650,
        restart: Restart = "year",
        compute: Callable[[list[Any]], Sequence[Any]] | None = None,
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep must be 1 or more, got {keep}")
        self.folder = local_path(folder, name="the output")
        self.model = (
            model
            if model is None or isinstance(model, Recalibrator)
            else Source(local_path(model, name="model"), "model")
        )
        product, watch = Product(quantiles, members), Watch(alpha, run_length, restart)
        if model is not None:
            product.require_one()
        self.variable, self.observed_variable = variable, observed_variable
        self._settings = Settings(product, keep, watch, compute or compute_all)

    def __repr__(self) -> str:
        return f"<xrecal cycle in {self.folder}>"

    @explained("cycle.run")
    def run(
        self,
        forecasts: Parts,
        observations: Parts,
        now: str | Date | datetime | None = None,
        *,
        model_at: str | Date | datetime | None = None,
        reissue: bool = False,
        covariates: Part | Given = None,
    ) -> Outcome:
        """Learn new cases, issue new forecasts, and score and monitor earlier forecasts.

        Parameters
        ----------
        forecasts : path, pattern, DataArray, Dataset or sequence of them
            New forecasts, and older ones that have not verified yet.
        observations : path, pattern, DataArray, Dataset or sequence of them
            Observations. If several files have the same date, the last of these files counts.
        now : date, optional
            Current time in UTC; by default the time of the clock. The run does not use starts and
            observations after this time.
        model_at : date, optional
            Date to go back to: the run removes the models of later starts.
        reissue : bool
            Whether to issue forecasts again if the folder has them already, for example with other
            quantiles. The cycle must have kept the models of these forecasts.
        covariates : path, Dataset or dict from str to DataArray or Dataset, optional
            Covariates of the starts, unless they are coordinates of the forecasts. In a file, each
            variable is a covariate. The run reads all covariates into memory.

        Returns
        -------
        Outcome
            Lists of starts with and without a new forecast, counts, scores and alarms.

        Raises
        ------
        FileExistsError
            If another process writes to the folder, or the folder does not belong to a cycle.
        FileNotFoundError
            If an input is missing, or if the parent of the folder of the cycle does not exist.
        ValueError
            If inputs do not match each other or the model, or a file is damaged.
        OSError
            If the disk has no room for the models and forecasts that are due.
        TaskError
            If computing a score fails.

        Warns
        -----
        UserWarning
            If a start is late or not issued, a verified forecast cannot be scored, observations
            have future dates, or the model knows no observation of the two weeks before a start.
        """
        if self.model is None:
            raise ValueError("the cycle has no model; write xrecal.Cycle(folder, model, ...)")
        if isinstance(self.model, Recalibrator):
            base, digest = self.model, digest_of(to_dataset(self.model), repr(self.model.method))
            named, suffix = "the model", ".nc"
        else:
            digest, named = digest_of_file(self.model), str(self.model.path)
            base, suffix = open_recalibrator(self.model.path), self.model.path.suffix
        with readable("observations"):
            archive = open_archive(
                base, forecasts, observations, self.variable, self.observed_variable, covariates
            )
        folder = Folder(self.folder, suffix)
        with folder.alone():
            turn = Turn(self._settings, folder, base, archive, _date(now))
            turn.read_mark(digest)
            if model_at is not None:
                turn.go_back(_date(model_at))
            turn.count_future()
            turn.count_doubtful()
            turn.require_room()
            turn.issue(named, reissue)
            turn.score()
            turn.monitor()
            return turn.result()

    @explained("cycle.report")
    def report(self, path: str | PathLike[str] | None = None, *, days: int = 92) -> Figure:
        """Draw a page about the last months, and write the page to a file if ``path`` is given.

        Parameters
        ----------
        path : str or path-like, optional
            File of the page, with a name that ends in .pdf or .png.
        days : int
            Number of days to draw, up to the last start that has verified.

        Returns
        -------
        Figure
            Scores and coverage by lead, the monitor of the place and lead with the most evidence
            against calibration, and the status as text.

        Raises
        ------
        FileNotFoundError
            If there is no cycle in the folder, or no forecast of the cycle has verified yet.
        ValueError
            If the name of the file ends neither in .pdf nor in .png.
        """
        from xrecal.plot.cycle_page import cycle_page
        from xrecal.plot.page import check_page, write_page

        check_page(path)
        folder = Folder(self.folder, ".nc")
        scores, seen = (folder.read_data(name) for name in (SCORES, MONITOR))
        if scores is None or seen is None:
            raise FileNotFoundError(
                f"{self.folder} has no scores of a cycle; give the folder of a cycle whose "
                "forecasts have verified"
            )
        last = scores.indexes[next(iter(seen["restarts"].dims))].to_numpy()[-1]
        status = (self.folder / MAIL).read_text()
        figure = cycle_page(scores, seen, status, last - np.timedelta64(days, "D"))
        if path is not None:
            write_page(figure, path)
        return figure


def _date(given: str | Date | datetime | None) -> Date:
    """Return a date in UTC without a time zone; for None, return the current time."""
    if given is None:
        given = datetime.now(UTC)
    if isinstance(given, datetime) and given.tzinfo is not None:
        given = given.astimezone(UTC).replace(tzinfo=None)
    if isinstance(given, str):
        given = given.removesuffix("Z")
    date: Date = np.asarray(given, "datetime64[us]").ravel()[0]
    return date
