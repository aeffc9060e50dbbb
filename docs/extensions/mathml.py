"""Formulas as MathML, which browsers draw themselves: no script, no font, nothing fetched.

The converter is that of docutils; Sphinx offers scripts and images only.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(converted(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    html = converted(node, as_block=True)
    translator.body.append(f'<div class="math">{html}</div>\n')
    raise nodes.SkipNode


def converted(node: nodes.math | nodes.math_block, as_block: bool) -> str:
    """A formula, or its source and a warning where the converter does not know a command."""
    tex = node.astext()
    try:
        return str(tex2mathml(tex, as_block=as_block))
    except MathError as error:
        LOG.warning("cannot convert the formula %r: %s", tex, error, location=node)
        return f"<code>{nodes.raw('', tex).astext()}</code>"
