"""What is computed for the page, in processes of its own; a file for each part of it.

A file's functions marked with `@answer` are found by their names. Each takes plain values by name and `tell`,
which hears how far it is, and returns the bytes that are sent. With `quick` set it answers at once or raises
`Slow`: then the same call, without `quick`, is made in the slow lane.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

from separatrix.core.registry import modules

Answer = Callable[..., bytes]
MARK = "is_answer"
FIRST = ("checks", "controls", "maps", "questions", "see")
"""The files of what is seen first, which processes have before they are asked; others come when they are."""


def import_first() -> None:
    """Import what the first views need."""
    for name in FIRST:
        import_module(f"{__name__}.{name}")


@cache
def answer_named(name: str) -> Answer:
    """The function of this name."""
    first = [sys.modules[f"{__name__}.{each}"] for each in FIRST if f"{__name__}.{each}" in sys.modules]
    for files in (first, modules(sys.modules[__name__])):
        for module in files:
            found: Answer | None = vars(module).get(name)
            if getattr(found, MARK, False):
                assert found is not None
                return found
    raise KeyError(name)
