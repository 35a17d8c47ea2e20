"""Modules of the user's own, in the folder where a command is given, or in the one that is typed before them.

Such a folder is never on the path: a torch.py or a queue.py in it is not taken for the real one by anybody.
Only a module that the user names is loaded from there, and what such modules import from beside them;
installed modules and Python's own come first for these, too.
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
"""Where frames between an import and its finder come from."""


class Ambiguous(ImportError):
    """A module here has the name of one that is installed."""


class Beside(MetaPathFinder):
    """The finder that imports ask last: it knows the user's own modules, and the folder of each."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._mentioned: dict[str, str] = {}

    def name(self, module: str, folder: str | None = None) -> bool:
        """Let a module that the user named be loaded from the current folder or another; is it there?"""
        top, place = _top(module), folder or str(Path.cwd())
        here = PathFinder.find_spec(top, [place]) if top else None
        if here is None:
            return False
        if top not in sys.modules:  # named before in another folder, and not loaded
            self._folders.pop(top, None)
        there = _known(top)
        if there is not None and _place(there) != _place(here):
            if here.origin is None:  # a folder without code loses to a module
                return False
            which = "that" if folder else "this"
            raise Ambiguous(
                f"{Path(here.origin).relative_to(place)} in {which} folder has the name of another module "
                f"({there.origin}); rename it"
            )
        self._folders[top] = place
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        return True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that was named, or that one of the user's own imports."""
        folder = self._folders.get(fullname) or self._folders.get(_importer())
        if path is not None or folder is None:
            return None
        found = PathFinder.find_spec(fullname, [folder])
        if found is not None:
            self._folders[fullname] = folder
        return found

    def mention(self, importer: str, imports: Iterable[str]) -> None:
        """Note what one of the user's modules imports, now or later."""
        folder = self._folders.get(_top(importer))
        if folder is not None:
            self._mentioned.update((_top(each), folder) for each in imports)

    def look(self, module: str) -> ModuleSpec | None:
        """Where a module is that is the user's own or imported by one; nothing is loaded."""
        folder = self._folders.get(_top(module)) or self._mentioned.get(_top(module))
        path, found = [folder] if folder else None, None
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            found = None if path is None else PathFinder.find_spec(".".join(parts[:end]), path)
            path = None if found is None else list(found.submodule_search_locations or []) or None
        return found


OWN = Beside()


def module_of(path: str) -> str:
    """The module that a path leads to.

    >>> module_of("sub/mine"), module_of("mine.part")
    ('mine', 'mine.part')
    """
    return path.rpartition("/")[2]


def folder_of(path: str) -> str | None:
    """The whole path of the folder that a module is in; None where it is named without one."""
    folder, slash, _ = path.rpartition("/")
    return str(Path(folder or "/").resolve()) if slash else None


def spelled_path(path: str) -> str:
    """A module by the shortest path from here; one that was given from the root and is not below, from there.

    >>> spelled_path("./sub/../mine"), spelled_path("sub//mine"), spelled_path("mine")
    ('mine', 'sub/mine', 'mine')
    """
    folder, here = folder_of(path), Path.cwd()
    if folder is None:
        return path
    if not path.startswith("/") or Path(folder).is_relative_to(here):
        folder = os.path.relpath(folder, here)
    return str(Path(folder, module_of(path)))


def locate(module: str) -> ModuleSpec | None:
    """Where a module is, the user's own among them."""
    try:
        found = find_spec(module)
    except (ModuleNotFoundError, ValueError):
        found = None
    return found or OWN.look(module)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _known(top: str) -> ModuleSpec | None:
    """The spec of a module that is loaded, or would be."""
    if top in sys.modules:
        return getattr(sys.modules[top], "__spec__", None) or ModuleSpec(top, None, origin="loaded already")
    return find_spec(top)


def _place(spec: ModuleSpec) -> tuple[Path, ...]:
    where = [spec.origin] if spec.has_location and spec.origin else spec.submodule_search_locations or []
    return tuple(Path(each).resolve() for each in where)


def _importer() -> str:
    """The package whose code is importing right now: of the frame that called the machinery of imports."""
    frame: FrameType | None = sys._getframe()
    for inside in (False, True):
        while frame is not None and (_package(frame) in IMPORTING) is inside:
            frame = frame.f_back
    return "" if frame is None else _package(frame)


def _package(frame: FrameType) -> str:
    return _top(frame.f_globals.get("__name__", ""))
