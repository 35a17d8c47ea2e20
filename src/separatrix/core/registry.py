"""Registration by file: the classes that the modules of a folder define."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Protocol, TypeVar, cast


class Named(Protocol):
    """A class with the name that users write."""

    name: str


class _Paragraphs:
    """Some paragraphs of a class's docstring, as one line."""

    def __init__(self, paragraphs: slice) -> None:
        self.paragraphs = paragraphs

    def __get__(self, _: object, owner: type) -> str:
        paragraphs = inspect.cleandoc(owner.__doc__ or "").split("\n\n")
        return " ".join(" ".join(paragraphs[self.paragraphs]).split())


class Described:
    """A class that lists show with the text of its docstring."""

    title: ClassVar[str] = cast("str", _Paragraphs(slice(1)))
    """The first paragraph: one line."""
    description: ClassVar[str] = cast("str", _Paragraphs(slice(1, None)))
    """The other paragraphs."""


Registered = TypeVar("Registered", bound=Named)


def modules(package: ModuleType, folders: bool = False) -> Iterator[ModuleType]:
    """Import the files of a package, or its folders, except names that begin with an underscore."""
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg == folders):
        if not name.startswith("_"):
            yield import_module(f"{package.__name__}.{name}")


def find_classes(package: ModuleType, kind: Registered) -> list[Registered]:
    """Return the concrete subclasses of a kind that the files of a package define."""
    return [var for module in modules(package) for var in vars(module).values() if _is_defined_in(module, var, kind)]


def _is_defined_in(module: ModuleType, value: Any, kind: object) -> bool:
    is_concrete = isinstance(value, type) and kind in value.__mro__ and not inspect.isabstract(value)
    # Imported classes are variables of the module as well; only its own count.
    return is_concrete and value.__module__ == module.__name__


def by_name(classes: Iterable[Registered], plural: str) -> dict[str, Registered]:
    """Return the classes by name, in their order; two of the same name are an error."""
    registry: dict[str, Registered] = {}
    for class_ in classes:
        if class_.name in registry:
            raise ImportError(f"two {plural} are named {class_.name}: {registry[class_.name]} and {class_}")
        registry[class_.name] = class_
    return registry
