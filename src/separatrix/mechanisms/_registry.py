"""Which mechanisms there are: all that the modules in the families' folders define."""

from __future__ import annotations

from types import ModuleType

from separatrix.core.registry import by_name, find_classes, modules
from separatrix.mechanisms._base import Mechanism

FIRST = "kernels"
"""The folder listed before the others: softmax and linear, which all are compared with."""


def registered(package: ModuleType) -> dict[str, type[Mechanism]]:
    """Every mechanism in the folders of a package, by name; sorted by folder, then by name."""
    families = sorted(modules(package, folders=True), key=lambda each: each.__name__.split(".")[-1] != FIRST)
    folders = (sorted(find_classes(family, Mechanism), key=lambda each: each.name) for family in families)
    return by_name((each for folder in folders for each in folder), "mechanisms")
