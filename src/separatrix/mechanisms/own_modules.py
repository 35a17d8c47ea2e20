"""Import of a user's modules, from the current folder or from the folder that is typed before them.

Such a folder is never on the path: a torch.py or a queue.py in it never replaces the real module. Only
modules that the user names are loaded from there, and those that they import from the same folder, unless an
installed module or one of Python has that name.
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType

IMPORTING = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
"""Packages of the frames between an import statement and its finder."""


class Ambiguous(ImportError):
    """A user's module has the name of an installed one."""


class Beside(MetaPathFinder):
    """The last finder on the meta path: it knows the folders of the user's own modules."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._mentioned: dict[str, str] = {}

    def name(self, module: str, folder: str | None = None) -> bool:
        """Allow a module to be loaded from a folder (default: the current one); return whether it exists."""
        top, place = _top(module), folder or str(Path.cwd())
        local = PathFinder.find_spec(top, [place]) if top else None
        if local is None:
            return False
        if top not in sys.modules:  # named before in another folder, and not loaded
            self._folders.pop(top, None)
        installed = _find_installed(top)
        if installed is not None and _locations(installed) != _locations(local):
            if local.origin is None:  # a folder without code loses to a module
                return False
            pronoun = "that" if folder else "this"
            raise Ambiguous(
                f"{Path(local.origin).relative_to(place)} in {pronoun} folder has the name of another module "
                f"({installed.origin}); rename it"
            )
        self._folders[top] = place
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        return True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that was named, or that one of the user's own modules imports."""
        folder = self._folders.get(fullname) or self._folders.get(_importer())
        # A path is given for a submodule, whose package has been found already.
        if path is not None or folder is None:
            return None
        spec = PathFinder.find_spec(fullname, [folder])
        if spec is not None:
            self._folders[fullname] = folder
        return spec

    def mention(self, importer: str, imports: Iterable[str]) -> None:
        """Record the imports of one of the user's modules, executed or not."""
        folder = self._folders.get(_top(importer))
        if folder is not None:
            self._mentioned.update((_top(name), folder) for name in imports)

    def look(self, module: str) -> ModuleSpec | None:
        """Return the spec of a user's module, or of one that it imports, without loading anything."""
        folder = self._folders.get(_top(module)) or self._mentioned.get(_top(module))
        path, spec = [folder] if folder else None, None
        parts = module.split(".")
        # Package by package: `find_spec` of importlib would import the parents.
        for end in range(1, len(parts) + 1):
            spec = None if path is None else PathFinder.find_spec(".".join(parts[:end]), path)
            path = None if spec is None else list(spec.submodule_search_locations or []) or None
        return spec


OWN = Beside()


def module_of(path: str) -> str:
    """Return the module at the end of a path.

    >>> module_of("sub/mine"), module_of("mine.part")
    ('mine', 'mine.part')
    """
    return path.rpartition("/")[2]


def folder_of(path: str) -> str | None:
    """Return the absolute path of the folder before a module; None if there is none."""
    folder, slash, _ = path.rpartition("/")
    return str(Path(folder or "/").resolve()) if slash else None


def spelled_path(path: str) -> str:
    """Return a module by the path from here, or by its absolute path if that was given and is not below.

    >>> spelled_path("./sub/../mine"), spelled_path("sub//mine"), spelled_path("mine")
    ('mine', 'sub/mine', 'mine')
    """
    folder, current = folder_of(path), Path.cwd()
    if folder is None:
        return path
    if not path.startswith("/") or Path(folder).is_relative_to(current):
        folder = os.path.relpath(folder, current)
    return str(Path(folder, module_of(path)))


def locate(module: str) -> ModuleSpec | None:
    """Return the spec of a module, installed or the user's own."""
    try:
        spec = find_spec(module)
    except (ModuleNotFoundError, ValueError):
        spec = None
    return spec or OWN.look(module)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _find_installed(top: str) -> ModuleSpec | None:
    """Return the spec of a module that is loaded, or that an import would load."""
    if top in sys.modules:
        return getattr(sys.modules[top], "__spec__", None) or ModuleSpec(top, None, origin="loaded already")
    return find_spec(top)


def _locations(spec: ModuleSpec) -> tuple[Path, ...]:
    paths = [spec.origin] if spec.has_location and spec.origin else spec.submodule_search_locations or []
    return tuple(Path(path).resolve() for path in paths)


def _importer() -> str:
    """Return the package whose code is importing: that of the frame that called the import machinery."""
    frame: FrameType | None = sys._getframe()
    for inside in (False, True):
        while frame is not None and (_package(frame) in IMPORTING) is inside:
            frame = frame.f_back
    return "" if frame is None else _package(frame)


def _package(frame: FrameType) -> str:
    return _top(frame.f_globals.get("__name__", ""))
