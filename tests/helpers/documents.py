"""What a command prints with --json, held to the schema of it; and what every result in Python can do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from separatrix.core.errors import UsageError
from separatrix.core.numbers.json import json_text
from separatrix.core.result import Result
from separatrix.pages.plots.registry import DRAWINGS
from separatrix.schemas import schema

PICTURE_BYTES = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
"""What files of these endings begin with."""


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def require_document(name: str, found: Any) -> Any:
    """A document as it was printed, or as `as_json` returned it; it must be as the schema says."""
    read = json.loads(found if isinstance(found, str) else json_text(found))
    wrong = best_match(_validator(name).iter_errors(read))
    assert wrong is None, f"{name} at {wrong.json_path}: {wrong.message[:300]}"
    return read


class Page(HTMLParser):
    """What a piece of HTML has in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def require_result(found: Result, folder: Path, pictures: Sequence[str] = (".svg",)) -> None:
    """A line, a small table, a file as its ending says, and the document of its schema.

    `pictures` are the endings of pictures to try: the format does not depend on what is drawn.
    """
    assert found.summary in repr(found)
    assert len(repr(found)) <= 200
    assert "\n" not in repr(found)
    page = found._repr_html_()
    assert len(page) < 20_000
    shown = Page(page)
    assert shown.tags <= {"div", "p", "table", "tbody", "tr", "th", "td"}
    assert shown.attributes <= {"style"}
    stem = folder / "found"
    drawn = len(DRAWINGS[found.kind].panels(found)) > 0
    for ending in (".json", ".csv", ".parquet", *(pictures if drawn else ())):
        assert found.save(stem.with_suffix(ending)).stat().st_size > 0
    assert require_document(found.kind, stem.with_suffix(".json").read_text()) == json.loads(json_text(found.as_json()))
    frame = found.to_frame()
    assert pl.read_parquet(stem.with_suffix(".parquet")).equals(frame)
    assert len(frame) == len(found.rows())
    for ending in pictures if drawn else ():
        assert PICTURE_BYTES[ending] in stem.with_suffix(ending).read_bytes()[:1000]
    with pytest.raises(UsageError, match="does not say what to write"):
        found.save(stem.with_suffix(".docx"))
