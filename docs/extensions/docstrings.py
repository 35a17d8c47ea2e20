"""Convert docstrings, which are plain text with names in `backquotes`, to reStructuredText for autodoc."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(`[^`]*`|\*\*[^*]+:\*\*)")


def translate(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Escape markup characters, and mark an indented block after a paragraph as code."""
    output: list[str] = []
    example = False
    for line in lines:
        indented = line.startswith("    ")
        last = next((text for text in reversed(output) if text.strip()), "")
        if not example and indented and output and not output[-1].strip() and not re.match(r"\s|- ", last):
            output += [".. code-block:: python", ""]
            example = True
        example = example and (indented or not line.strip())
        doctest = line.lstrip().startswith((">>>", "...")) or last.lstrip().startswith((">>>", "..."))
        output.append(line if example or doctest else _escaped(line))
    lines[:] = output


def _escaped(line: str) -> str:
    parts = CODE.split(line)
    return "".join(
        part if CODE.fullmatch(part) else re.sub(r"([*|]|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", translate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
