"""Docstrings are plain text with names in `backquotes`; here they become what autodoc reads."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(`[^`]*`|\*\*[^*]+:\*\*)")


def translate(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Escape what would be markup, and mark an indented block below a sentence as code."""
    found: list[str] = []
    example = False
    for line in lines:
        indented = line.startswith("    ")
        last = next((each for each in reversed(found) if each.strip()), "")
        if not example and indented and found and not found[-1].strip() and not re.match(r"\s|- ", last):
            found += [".. code-block:: python", ""]
            example = True
        example = example and (indented or not line.strip())
        doctest = line.lstrip().startswith((">>>", "...")) or last.lstrip().startswith((">>>", "..."))
        found.append(line if example or doctest else _escaped(line))
    lines[:] = found


def _escaped(line: str) -> str:
    parts = CODE.split(line)
    return "".join(
        part if CODE.fullmatch(part) else re.sub(r"([*|]|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", translate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
