"""Check that built pages load no scripts, styles, fonts or pictures from other sites."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//|<link\b[^>]*href=["'](?:https?:)?//"""
)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")


def look(app: Sphinx, failed: Exception | None) -> None:
    if failed is not None or app.builder.format != "html":
        return
    for file in sorted(Path(app.outdir).rglob("*")):
        pattern = {".html": LOADED, ".css": IN_STYLES}.get(file.suffix)
        if pattern is not None and (match := pattern.search(file.read_text())):
            logging.getLogger(__name__).warning("%s loads from another site: %s", file.name, match[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
