"""Packages that are imported when they are first used, so that short commands do not load them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """A module that is imported at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as np
    import polars as pl
else:
    np, pl = LazyModule("numpy"), LazyModule("polars")

__all__ = ["LazyModule", "np", "pl"]
