"""Context variables with another value within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def set_within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a context variable another value within the block."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)
