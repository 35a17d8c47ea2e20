"""The list of mechanisms: all that modules in the folders of the families define."""

from __future__ import annotations

from types import ModuleType

from separatrix.core.registry import by_name, find_classes, modules
from separatrix.mechanisms._base import Mechanism

FIRST = "kernels"
"""The folder listed before the others: softmax and linear, which all are compared with."""


def find_mechanisms(package: ModuleType) -> dict[str, type[Mechanism]]:
    """Return every mechanism in the folders of a package, by name; sorted by folder, then by name."""
    families = sorted(modules(package, folders=True), key=lambda family: family.__name__.split(".")[-1] != FIRST)
    folders = (sorted(find_classes(family, Mechanism), key=lambda kind: kind.name) for family in families)
    return by_name((mechanism for folder in folders for mechanism in folder), "mechanisms")
