"""Standard JSON: numbers that are not finite become null."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return a JSON document as text; compact if `indent` is None.

    >>> json_text({"margin": float("nan"), "bits": [1.5, float("inf")]}, indent=None)
    '{"margin":null,"bits":[1.5,null]}'
    """
    separators = (",", ":") if indent is None else None
    return json.dumps(finite(value), indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)


def json_file(value: Any, indent: int = 1) -> bytes:
    """Return the content of a JSON file."""
    return f"{json_text(value, indent)}\n".encode()


def finite(value: Any) -> Any:
    """Replace numbers that are not finite by None, recursively."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
