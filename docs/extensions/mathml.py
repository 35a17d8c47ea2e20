"""Render formulas as MathML, which browsers typeset without scripts or fonts from the network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

SPACE = '<mspace width="0.17em"></mspace>'
SPACED = re.compile(r"(<mo>&ApplyFunction;</mo>)(?=\s*<m(?:i|n|frac|sqrt|sub|sup)\b)")
"""Where a space belongs between a function and an argument without brackets, as in log n."""
NUMBERED = re.compile(r"(</mn>)(?=\s*<mi>\w\w)")
"""Where a space belongs between a number and a function, as in 3.48 log n."""


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, as_block: bool = False) -> str:
    try:
        return SPACED.sub(r"\1" + SPACE, NUMBERED.sub(r"\1" + SPACE, tex2mathml(node.astext(), as_block=as_block)))
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, node.astext(), location=node)
        return escape(node.astext())


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
