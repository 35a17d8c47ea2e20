"""What is computed for the page, in processes of its own; a file for each part of it.

A file's functions marked with `@answer` are found by their names. Each takes plain values by name and `tell`,
which hears how far it is, and returns the bytes that are sent. With `quick` set it answers at once or raises
`Slow`: then the same call, without `quick`, is made in the slow lane.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from separatrix.registry import modules

Answer = Callable[..., bytes]
MARK = "is_answer"

ANSWERS: dict[str, Answer] = {
    name: each
    for module in modules(sys.modules[__name__])
    for name, each in vars(module).items()
    if getattr(each, MARK, False)
}
"""Every function that answers, by its name."""
