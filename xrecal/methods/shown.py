"""Settings in a notebook."""

from __future__ import annotations


class Shown:
    """Part of settings that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from xrecal.report_html import settings_html

        return settings_html(self)
