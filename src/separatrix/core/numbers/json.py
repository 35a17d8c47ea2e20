"""JSON that every reader can read: numbers are finite, or null."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, indent: int | None = 2) -> str:
    """One JSON document; without `indent` as short as can be.

    >>> json_text({"margin": float("nan"), "bits": [1.5, float("inf")]}, indent=None)
    '{"margin":null,"bits":[1.5,null]}'
    """
    separators = (",", ":") if indent is None else None
    return json.dumps(
        finite(value), indent=indent, separators=separators, ensure_ascii=False, allow_nan=False
    )


def json_file(value: Any, indent: int = 1) -> bytes:
    """The whole of a file with one JSON document."""
    return f"{json_text(value, indent)}\n".encode()


def finite(value: Any) -> Any:
    """A value with None in the place of what is not a finite number, however deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, list | tuple) else value
