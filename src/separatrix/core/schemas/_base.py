"""Types for documents written as a TypedDict below `@document`; their docstrings become descriptions."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, with_config

document = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
"""Forbid other keys, and use the docstring below a key as its description."""

Whole = Annotated[int, Field(ge=0)]
Number = float | None
"""A number, or null where it is not finite."""
Exact = Annotated[int | str, Field(description='A whole number, or text that is exact, as "1/3" or "0.1".')]
Values = dict[str, Exact]
"""Parameters by name."""
Texts = list[str]
