"""HTML of settings for notebooks, and functions that also make other HTML of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape
from typing import Any

# The notebook's own colours, if it has any, so that text stays legible on dark ones.
_STYLE = """
<style>
.xrecal { color: var(--jp-content-font-color0, inherit); line-height: 1.5; max-width: 900px; }
.xrecal-head { border-bottom: 1px solid var(--jp-border-color2, #bbb); padding-bottom: 3px; }
.xrecal table { border-collapse: collapse; margin: 4px 0 8px 1.2em; background: none; }
.xrecal td { border: none; padding: 1px 14px 1px 0; text-align: left; vertical-align: top;
  background: none; color: inherit; }
.xrecal td:first-child { color: var(--jp-content-font-color2, #777); white-space: nowrap; }
.xrecal summary { cursor: pointer; padding: 2px 0; }
.xrecal .xrecal-default { color: var(--jp-content-font-color2, #777); }
.xrecal .xrecal-state { margin-left: 1.2em; }
</style>
"""


def settings_html(settings: Any) -> str:
    """Return the settings of a method as HTML; settings that differ from the default are bold."""
    return framed(f"xrecal.{type(settings).__name__}", settings_table(settings), repr(settings))


def framed(title: str, body: str, plain: str) -> str:
    """Return HTML with a title, a style, and a plain text that appears if styles have no effect."""
    head = f'<div class="xrecal-head"><b>{escape(title)}</b></div>'
    fallback = f'<pre style="display: none">{escape(plain)}</pre>'
    return f'{_STYLE}<div class="xrecal">{head}{body}</div>{fallback}'


def settings_table(settings: Any) -> str:
    """Return an HTML table of settings; values that differ from the default are bold."""
    rows = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        text = escape(repr(value))
        default = value == field.default
        shown = f'<span class="xrecal-default">{text}</span>' if default else f"<b>{text}</b>"
        rows.append((escape(field.name), shown))
    return table(rows)


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Return an HTML table whose rows are pairs of a label and a text."""
    lines = "".join(f"<tr><td>{label}</td><td>{text}</td></tr>" for label, text in rows)
    return f"<table><tbody>{lines}</tbody></table>"


def folded(title: str, body: str, unfolded: bool = False) -> str:
    """Return HTML with a title; a click on the title shows or hides the body."""
    return f"<details{' open' if unfolded else ''}><summary>{title}</summary>{body}</details>"
