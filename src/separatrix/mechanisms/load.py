"""A mechanism from what the user typed: a registered name, or `module:attribute` of their own."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any

from separatrix.errors import one_line
from separatrix.mechanisms import MECHANISMS, Mechanism, mechanism_named
from separatrix.mechanisms.beside import OWN, Ambiguous
from separatrix.mechanisms.custom import wrap
from separatrix.parameters import UsageError, nearest

GROUP = "separatrix.mechanisms"
"""Entry points of this group register the mechanisms of other packages by name."""


def mechanism_from(source: Any) -> Mechanism:
    """A mechanism from its name, `module:attribute`, or the thing itself.

    >>> mechanism_from("power:beta=4")
    <mechanism power:beta=4>
    """
    if not isinstance(source, str):
        return wrap(source)
    name, _, rest = source.partition(":")
    if name in MECHANISMS:
        return mechanism_named(source)
    plugin = next((each for each in entry_points(group=GROUP) if each.name == source), None)
    if plugin is not None:
        return wrap(_imported(plugin.module, plugin.attr, source), source)
    if not rest or "=" in rest:
        return mechanism_named(source)
    try:
        OWN.name(name)
    except Ambiguous as error:
        raise UsageError(f"{source}: {error}") from None
    return wrap(_imported(name, rest, source), source)


def _imported(module: str, attribute: str, source: str) -> Any:
    """The attribute of a module; whatever goes wrong is told in one line."""
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise UsageError(
                f"{source}: importing {module} needs {error.name}, which is not installed"
            ) from None
        near = nearest(module, list(MECHANISMS))
        raise UsageError(
            f"{source}: there is no module {module} here and no mechanism of that name{near}"
        ) from None
    except Exception as error:
        raise UsageError(
            f"{source}: importing {module} fails: {type(error).__name__}: {one_line(error)}"
        ) from None
    for part in attribute.split("."):
        if part not in dir(found):
            public = [each for each in dir(found) if not each.startswith("_")]
            raise UsageError(f"{source}: {module} has no {attribute}{nearest(part, public)}")
        found = getattr(found, part)
    return found
