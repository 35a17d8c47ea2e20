"""Registration by file: the classes that the modules of a folder define."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, TypeVar


class Named(Protocol):
    """A class with the name that users write."""

    name: str


Registered = TypeVar("Registered", bound=Named)


def modules(package: ModuleType, folders: bool = False) -> Iterator[ModuleType]:
    """The files in a folder, or else its folders, but for names that begin with an underscore."""
    for name in sorted(
        module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg == folders
    ):
        if not name.startswith("_"):
            yield import_module(f"{package.__name__}.{name}")


def defined(package: ModuleType, kind: Registered) -> list[Registered]:
    """The classes of a kind that the files of a folder define themselves and that leave nothing abstract."""
    return [var for module in modules(package) for var in vars(module).values() if _of(module, var, kind)]


def _of(module: ModuleType, each: Any, kind: object) -> bool:
    derived = isinstance(each, type) and kind in each.__mro__ and not inspect.isabstract(each)
    return derived and each.__module__ == module.__name__


def by_name(classes: Iterable[Registered], what: str) -> dict[str, Registered]:
    """The classes by name, in their order; two of one name are an error."""
    found: dict[str, Registered] = {}
    for class_ in classes:
        if class_.name in found:
            raise ImportError(f"two {what} are named {class_.name}: {found[class_.name]} and {class_}")
        found[class_.name] = class_
    return found
