"""Settings as text, and in a notebook."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Shown:
    """Part of settings whose text tells those that are not the default, and a notebook all."""

    def __repr__(self) -> str:
        given = [
            (field.name, getattr(self, field.name), field.default)
            for field in fields(cast("DataclassInstance", self))
        ]
        told = [f"{name}={value!r}" for name, value, default in given if value != default]
        return f"{type(self).__name__}({', '.join(told)})"

    def _repr_html_(self) -> str:
        from xrecal.report_html import settings_html

        return settings_html(self)
