"""Which mechanisms there are: all that the modules in the families' folders define."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from separatrix.mechanisms._base import Mechanism

FIRST = "kernels"
"""The folder listed before the others: softmax and linear, which all are compared with."""


def registered(package: ModuleType) -> dict[str, type[Mechanism]]:
    """Every mechanism in the folders of a package, by name; sorted by folder, then by name."""
    found: dict[str, type[Mechanism]] = {}
    families = _public(package, folders=True)
    for family in sorted(families, key=lambda each: not each.__name__.endswith(f".{FIRST}")):
        folder = [each for module in _public(family, folders=False) for each in _defined(module)]
        for each in sorted(folder, key=lambda one: one.name):
            if each.name in found:
                raise ImportError(f"two mechanisms are named {each.name}: {found[each.name]} and {each}")
            found[each.name] = each
    return found


def _public(package: ModuleType, folders: bool) -> Iterator[ModuleType]:
    """The folders in a folder, or else its files, but for names that begin with an underscore."""
    for name in sorted(each.name for each in pkgutil.iter_modules(package.__path__) if each.ispkg == folders):
        if not name.startswith("_"):
            yield import_module(f"{package.__name__}.{name}")


def _defined(module: ModuleType) -> Iterator[type[Mechanism]]:
    """The mechanisms that a module defines itself and leaves nothing to subclasses."""
    for each in vars(module).values():
        mechanism = isinstance(each, type) and issubclass(each, Mechanism) and not inspect.isabstract(each)
        if mechanism and each.__module__ == module.__name__:
            yield each
