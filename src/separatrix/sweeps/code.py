"""Which version of the code computes a cell: a digest of the sources its result depends on.

These are the modules of the construction and the mechanism, of the engines, and all they import that is
not Python's own or installed beside it. Of each the syntax tree counts, without docstrings and comments.
A change to one mechanism thus leaves the cells of the others as they are. Data files that a mechanism
reads are not seen, nor is what the packages it uses contain.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.constructions import Construction
from separatrix.core.errors import PACKAGES
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.own_modules import OWN, locate, module_of

if TYPE_CHECKING:
    from separatrix.training.tasks import Task

LISTS = (
    "separatrix.constructions",
    "separatrix.training.data",
    "separatrix.mechanisms",
    "separatrix.training.tasks",
)
"""Rooms that only list what is in them: a name imported from one leads to the module that defines it."""
ROOTS = ("separatrix.exact.engines", "separatrix.exact.verdicts.verdict")
"""Where the answer of every cell comes from."""
LEARNING = ("separatrix.training.learning.loop", "separatrix.mechanisms.learned")
"""Where training comes from; the modules that learn extras are imported by name."""
OURS = "separatrix"
SHOWING = (
    "separatrix.core.documents",
    "separatrix.core.judgement",
    "separatrix.core.rendering",
    "separatrix.core.result",
    "separatrix.core.schemas",
)
"""How answers are shown, typed and interpreted, which does not change what is computed and stored."""


def code_version(kind: type[Construction], mechanism: Mechanism) -> str:
    """The digest for cells of this construction and mechanism; the same on every machine."""
    return code_of(*ROOTS, *_origins(kind), *_origins(type(mechanism)), *_own(mechanism))


def training_code(task: type[Task], mechanism: Mechanism, from_witness: bool) -> str:
    """The digest for training of this mechanism on this task, from scratch or from weights written down."""
    first: tuple[str, ...] = ()
    if from_witness:
        from separatrix.training.learning.witnesses import WITNESSES

        written = WITNESSES.get(task.name)
        first = ("separatrix.training.learning.witnesses", *(_origins(written) if written else ()))
    return code_of(*LEARNING, *_origins(task), *_origins(type(mechanism)), *_own(mechanism), *first)


def task_code(task: type[Task]) -> str:
    """The digest for the samples and the floor of a task."""
    return code_of(*_origins(task))


def code_of(*names: str) -> str:
    """The digest for work whose result depends on these modules and on what they import."""
    return _digest(frozenset(names))


def _origins(kind: type) -> Iterator[str]:
    """The modules of a class and of those it inherits from, as far as they are not Python's or torch's."""
    for each in kind.__mro__:
        if _top(each.__module__) == _top(kind.__module__):
            yield each.__module__


def _own(mechanism: Mechanism) -> Iterator[str]:
    """The modules of what a user gave to be a mechanism: as it is named, and where it is from."""
    if not isinstance(mechanism, CustomMechanism):
        return
    module, colon, _ = mechanism.name.partition(":")
    if colon:
        yield module_of(module)
    attend = mechanism.attend
    yield str(getattr(attend, "__module__", None) or type(attend).__module__)
    yield from _origins(type(attend))


@cache
def _digest(roots: frozenset[str]) -> str:
    found = hashlib.sha256()
    for name, module in sorted(modules(roots).items()):
        found.update(f"{name} {module.digest}\n".encode())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Module:
    """What matters of a module: what it does, and what it imports."""

    digest: str
    imports: tuple[str, ...]


def modules(roots: Iterable[str]) -> dict[str, Module]:
    """The modules named, and all they import that is of the same packages or lies open beside them."""
    found: dict[str, Module] = {}
    waiting = sorted(roots)
    packages = frozenset(map(_top, waiting))
    while waiting:
        name = waiting.pop()
        if name in found or name in LISTS or name.startswith(SHOWING):
            continue
        if not (_top(name) in packages or _is_local(_top(name))):
            continue
        module = _module(name)
        if module is not None:
            found[name] = module
            OWN.mention(name, module.imports)
            waiting += module.imports
            waiting += [] if _top(name) == OURS else _parents(name)
    return found


def _top(name: str) -> str:
    return name.partition(".")[0]


def _parents(name: str) -> list[str]:
    """`a` and `a.b` for `a.b.c`: what their `__init__` does is done, too."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


@cache
def _is_local(name: str) -> bool:
    """Whether a module is neither Python's own nor installed."""
    if name in sys.stdlib_module_names:
        return False
    spec = locate(name)
    if spec is None:
        return False
    places = [spec.origin] if spec.origin else spec.submodule_search_locations or []
    found = [Path(place).resolve() for place in places if Path(place).exists()]
    return bool(found) and not any(map(_is_installed, found))


def _is_installed(file: Path) -> bool:
    """Whether a file is of a package that is installed: here, or where another environment shares its own."""
    here = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    return any(parent in here or parent.name in PACKAGES for parent in file.parents)


@cache
def _module(name: str) -> Module | None:
    text = source_of(name)
    if text is None:
        return None
    spec = locate(name)
    package = name if spec is not None and spec.submodule_search_locations else name.rpartition(".")[0]
    tree = ast.parse(text)
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    return Module(_tree_digest(tree, docstrings="__doc__" in text), imports)


def _tree_digest(tree: ast.Module, docstrings: bool) -> str:
    """The digest of what is executed, the same in every Python; `docstrings` for modules that read theirs."""
    words, waiting = list[str](), list[ast.AST | str]([tree])
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            words.append(node)
            continue
        parts: list[ast.AST | str] = [type(node).__name__]
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or value == [] or name == "ctx":  # newer Pythons have more fields, empty ones
                continue
            parts.append(name)
            for each in value if isinstance(value, list) else (value,):
                if not isinstance(each, ast.AST):
                    parts.append(repr(each))
                elif docstrings or not _is_docstring(each):
                    parts.append(each)
        waiting += [".", *reversed(parts)]
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    """Whether a statement is nothing but a text, wherever it stands."""
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
    )


def source_of(name: str) -> str | None:
    """The text of a module with one kind of line end; None where there is no such module."""
    spec = locate(name)
    text = getattr(spec.loader, "get_source", lambda _: None)(name) if spec is not None else None
    return None if text is None else "\n".join(text.splitlines())


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """The modules that a module in a package imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            written = "." * node.level + (node.module or "")
            module = resolve_name(written, package) if node.level else written
            yield module
            for name in node.names:
                yield _home(module, name.name)


def _home(module: str, name: str) -> str:
    """The module that a name imported from another leads to."""
    if module in LISTS:
        return str(getattr(getattr(import_module(module), name, None), "__module__", module))
    return f"{module}.{name}"
