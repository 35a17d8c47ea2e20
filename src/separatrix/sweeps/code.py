"""Which version of the code computes a cell: a digest of the sources its result depends on.

These are the modules of the construction and the mechanism, of the engines, and all they import.
A change to one mechanism thus leaves the cells of the others as they are.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from separatrix.constructions import Construction
from separatrix.mechanisms import Mechanism

LISTS = ("separatrix.constructions", "separatrix.mechanisms")
"""Rooms that only list what is in them: a name imported from one leads to the module that defines it."""
ROOTS = ("separatrix.engines", "separatrix.verdicts.verdict")
"""Where the answer of every cell comes from."""


def code_version(kind: type[Construction], mechanism: Mechanism) -> str:
    """The digest for cells of this construction and mechanism; the same on every machine."""
    return _digest(frozenset({*_origins(kind), *_origins(type(mechanism)), *_own(mechanism)}))


def _origins(kind: type) -> Iterator[str]:
    """The modules of a class and of those it inherits from, as far as they are not Python's or torch's."""
    for each in kind.__mro__:
        if each.__module__.partition(".")[0] == kind.__module__.partition(".")[0]:
            yield each.__module__


def _own(mechanism: Mechanism) -> Iterator[str]:
    """The module of a user's own mechanism, `module:attribute`."""
    name, colon, attribute = mechanism.name.partition(":")
    if colon and "=" not in attribute:
        yield name


@cache
def _digest(roots: frozenset[str]) -> str:
    found = hashlib.sha256()
    for name, module in sorted(modules({*ROOTS, *roots}).items()):
        found.update(f"{name} {module.digest}\n".encode())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Module:
    """What matters of a module: its text, and what it imports."""

    digest: str
    imports: tuple[str, ...]


def modules(roots: Iterable[str]) -> dict[str, Module]:
    """The modules named, and all they import of the same packages."""
    found: dict[str, Module] = {}
    waiting = sorted(roots)
    packages = {name.partition(".")[0] for name in waiting}
    while waiting:
        name = waiting.pop()
        module = None if name in found or name in LISTS else _module(name)
        if module is not None:
            found[name] = module
            waiting += [each for each in module.imports if each.partition(".")[0] in packages]
    return found


@cache
def _module(name: str) -> Module | None:
    text = source_of(name)
    if text is None:
        return None
    return Module(hashlib.sha256(text.encode()).hexdigest(), tuple(dict.fromkeys(_imports(text))))


def source_of(name: str) -> str | None:
    """The text of a module with one kind of line end; None where there is no such module."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    text = getattr(spec.loader, "get_source", lambda _: None)(name) if spec is not None else None
    return None if text is None else "\n".join(text.splitlines())


def _imports(text: str) -> Iterator[str]:
    """The modules a text imports, anywhere in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            for each in node.names:
                yield _home(node.module, each.name)


def _home(module: str, name: str) -> str:
    """The module that a name imported from another leads to."""
    if module in LISTS:
        return str(getattr(getattr(import_module(module), name, None), "__module__", module))
    return f"{module}.{name}"
