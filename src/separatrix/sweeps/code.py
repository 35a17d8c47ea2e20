"""The version of the code behind a work item: a hash of the sources that its result depends on.

These are the modules that the kind of work names below, those of the construction, task and mechanism, and
all modules of separatrix and of the user that they import. A change to one mechanism thus leaves the stored
cells of other mechanisms valid. Data files that a mechanism reads are not included, nor are the packages that
it uses.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import resolve_name
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from separatrix.constructions import Construction
from separatrix.core.errors import PACKAGES
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.own_modules import OWN, locate, module_of

if TYPE_CHECKING:
    from separatrix.training.tasks import Task

VERDICT_MODULES = ("separatrix.exact.engines", "separatrix.exact.verdicts.verdict")
TRAINING_MODULES = ("separatrix.training.learning.loop", "separatrix.mechanisms.learned")
"""The modules that learn extras are imported by name, so no import statement leads to them."""
REGISTRIES = ("constructions", "mechanisms", "training.data", "training.tasks")
"""Packages that list what is in them: a name imported from one leads to the module that defines the name."""
DISPLAY_MODULES = ("documents", "judgement", "rendering", "result", "schemas")
"""Modules of core that show results and do not change them."""
SOURCES = Path(__file__).parents[1]

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n;#]*)"
    r"|import[ \t]+(?P<modules>[^\n;#]+))",
    re.MULTILINE,
)


def code_version(kind: type[Construction], mechanism: Mechanism) -> str:
    """Return the version of the code for verdicts; the same on every machine."""
    return hash_code(*VERDICT_MODULES, *_class_modules(kind), *list_mechanism_modules(mechanism))


def training_code(task: type[Task], mechanism: Mechanism, from_witness: bool) -> str:
    """Return the version of the code for training runs, from scratch or from constructed weights."""
    modules = [*TRAINING_MODULES, *_class_modules(task), *list_mechanism_modules(mechanism)]
    if from_witness:
        from separatrix.training.learning.witnesses import WITNESSES

        modules.append("separatrix.training.learning.witnesses")
        modules += _class_modules(WITNESSES[task.name]) if task.name in WITNESSES else ()
    return hash_code(*modules)


def task_code(task: type[Task]) -> str:
    """Return the version of the code for the samples and the floor of a task."""
    return hash_code(*_class_modules(task))


@cache
def hash_code(*modules: str) -> str:
    """Return a hash of the package version, of these modules, and of what they import."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(find_sources(modules).items()))
    return hashlib.sha256("".join((f"{version('separatrix')}\n", *lines)).encode()).hexdigest()[:16]


def _class_modules(kind: type) -> Iterator[str]:
    """The modules of a class and of its bases in the same package."""
    package = _top(kind.__module__)
    return (base.__module__ for base in kind.__mro__ if _top(base.__module__) == package)


def list_mechanism_modules(mechanism: Mechanism) -> Iterator[str]:
    """Yield the modules of a mechanism; for a user's own, where it is named and where it is defined."""
    yield from _class_modules(type(mechanism))
    if isinstance(mechanism, CustomMechanism):
        module, colon, _ = mechanism.name.partition(":")
        if colon:
            yield module_of(module)
        attend = mechanism.attend
        yield str(getattr(attend, "__module__", None) or type(attend).__module__)
        yield from _class_modules(type(attend))


class SourceFile(NamedTuple):
    """The hash of a source file, and the names that its import statements lead to."""

    digest: str
    imports: tuple[str, ...]


def find_sources(modules: Iterable[str]) -> dict[str, str]:
    """Return the hashes of modules and of all they import from the same packages or from beside them."""
    digests: dict[str, str] = {}
    waiting = sorted(modules)
    packages = frozenset(map(_top, waiting))
    while waiting:
        name = waiting.pop()
        path = None if name in digests else _find_file(name, packages)
        if path is None:
            continue
        source = _read_source(name, path)
        digests[name] = source.digest
        waiting += source.imports
        if _top(name) != "separatrix":
            OWN.mention(name, source.imports)
            # The parent packages of a user's module are imported with it; ours only list their modules.
            parts = name.split(".")
            waiting += [".".join(parts[:end]) for end in range(1, len(parts))]
    return digests


def _top(name: str) -> str:
    return name.partition(".")[0]


def _find_file(name: str, packages: frozenset[str]) -> Path | None:
    """The source of a module of these packages, or of one that is neither Python's own nor installed."""
    if _top(name) == "separatrix":
        return _find_own_file(name.partition(".")[2])
    if _top(name) not in packages and _is_installed(_top(name)):
        return None
    spec = locate(name)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@cache
def _find_own_file(name: str) -> Path | None:
    """The source of a module of separatrix that matters for results."""
    if name in REGISTRIES or name.startswith(tuple(f"core.{module}" for module in DISPLAY_MODULES)):
        return None
    path = SOURCES.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def _is_installed(package: str) -> bool:
    """Whether a package is Python's own or installed, here or in an environment that shares its packages."""
    spec = None if package in sys.stdlib_module_names else locate(package)
    places = [spec.origin] if spec and spec.origin else spec.submodule_search_locations if spec else None
    paths = [Path(place).resolve() for place in places or ()]
    return not paths or any(parent.name in PACKAGES for path in paths for parent in path.parents)


# A file is read once per process, even if it changes: the process goes on with the code that it has loaded,
# and must not store the results under the version of the new code.
@cache
def _read_source(name: str, path: Path) -> SourceFile:
    text = path.read_text(encoding="utf-8", errors="replace")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports: list[str] = []
    for source, names in _find_imports(text):
        module = resolve_name(source, package) if source.startswith(".") else source
        if module.removeprefix("separatrix.") in REGISTRIES:
            registry = SOURCES.joinpath(*module.split(".")[1:], "__init__.py").read_text()
            imports += [home for home, exported in _find_imports(registry) if set(names) & set(exported)]
        else:
            imports += [module, *(f"{module}.{attribute}" for attribute in names)]
    # Most imported names are no modules. They are removed here once, not in every search.
    is_ours = _top(name) == "separatrix"
    modules = [x for x in imports if not is_ours or _find_file(x, frozenset({"separatrix"})) is not None]
    return SourceFile(hashlib.sha256(text.encode()).hexdigest(), tuple(dict.fromkeys(modules)))


def _find_imports(text: str) -> Iterator[tuple[str, list[str]]]:
    """The import statements of a source: the module, and the names that are imported from it."""
    for match in _IMPORT.finditer(text):
        names_text = re.sub(r"#[^\n]*", "", match["names"] or match["modules"]).strip("() \t\n")
        names = [name.split()[0] for name in names_text.split(",") if name.strip()]
        if match["source"]:
            yield match["source"], names
        else:
            yield from ((module, []) for module in names)
