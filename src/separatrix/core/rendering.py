"""How results reach the package that draws them, which is above the packages that compute.

`separatrix/__init__.py` registers a loader, so that a picture imports `pages` when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Renderer(Protocol):
    """Draws results and writes them to files."""

    def plot(self, result: Any, ax: Any) -> Any:
        """Draw a result on matplotlib axes, or on new ones, and return them."""

    def write(self, result: Any, out: Path) -> None:
        """Write a result in the format that the file's suffix names."""


_load: Callable[[], Renderer] | None = None


def register(load: Callable[[], Renderer]) -> None:
    """Set the function that imports the renderer."""
    global _load
    _load = load


def renderer() -> Renderer:
    """Return the registered renderer."""
    assert _load is not None, "separatrix/__init__.py registers it"
    return _load()
