"""The registered mechanisms, and one from what the user typed: a name, or `module:attribute` of their own."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

from separatrix.errors import one_line
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._registry import registered
from separatrix.mechanisms.custom import wrap
from separatrix.mechanisms.own_modules import OWN, Ambiguous
from separatrix.mechanisms.weights import MARKED
from separatrix.parameters import UsageError, nearest, read_words, require_known

GROUP = "separatrix.mechanisms"
"""Entry points of this group register the mechanisms of other packages by name."""


MECHANISMS: dict[str, type[Mechanism]] = registered(sys.modules["separatrix.mechanisms"])
"""Every mechanism that a file in a family's folder defines, by name."""


def examples() -> list[Mechanism]:
    """One of each registered mechanism."""
    return [each(**each.example) for each in MECHANISMS.values()]


def mechanism_named(text: str) -> Mechanism:
    """The mechanism that `text` names, with its parameters: `softmax`, `power:beta=4`.

    >>> mechanism_named("power:beta=4")
    <mechanism power:beta=4>
    """
    name, _, words = text.partition(":")
    require_known("mechanism", name, MECHANISMS)
    return MECHANISMS[name](**read_words(words.split(",") if words else []))


@cache
def _plugins() -> EntryPoints:
    """What other packages register; looked for once, since that reads about every installed package."""
    return entry_points(group=GROUP)


def mechanism_from(source: Any) -> Mechanism:
    """A mechanism from its name, `module:attribute`, or the thing itself.

    >>> mechanism_from("power:beta=4")
    <mechanism power:beta=4>
    """
    if not isinstance(source, str):
        return wrap(source)
    if marked := MARKED.fullmatch(source):
        return _weighted(source, marked[1])
    name, _, rest = source.partition(":")
    if name in MECHANISMS:
        return mechanism_named(source)
    plugin = next((each for each in _plugins() if each.name == source), None)
    if plugin is not None:
        return wrap(_imported(plugin.module, plugin.attr, source), source)
    if not rest or "=" in rest:
        return mechanism_named(source)
    try:
        OWN.name(name)
    except Ambiguous as error:
        raise UsageError(f"{source}: {error}") from None
    return wrap(_imported(name, rest, source), source)


def _weighted(source: str, name: str) -> Mechanism:
    """The mechanism `name` with the weights that the mark at the end of `source` is of."""
    found = mechanism_from(name)
    if found.spelled != source:
        raise UsageError(
            f"{name} has other weights here ({found.spelled}) than were asked for ({source}); "
            "let it load them, or draw them with a seed"
        )
    return found


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
