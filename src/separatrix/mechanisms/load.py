"""The registered mechanisms, and one from what the user typed: a name, or `module:attribute` of their own."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial, update_wrapper
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from separatrix.core.errors import one_line, user_source_line
from separatrix.core.parameters import UsageError, listed_mechanisms, nearest, read_words, require_known
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._registry import registered
from separatrix.mechanisms.custom import called_with, tried, wrap, wrapped
from separatrix.mechanisms.drawn_weights import draw, seeded
from separatrix.mechanisms.how_called import HowCalled
from separatrix.mechanisms.own_modules import OWN, Ambiguous, folder_of, module_of, spelled_path
from separatrix.mechanisms.signatures import OPTIONS, signature_of
from separatrix.mechanisms.weights import MARKED

GROUP = "separatrix.mechanisms"
"""Entry points of this group register the mechanisms of other packages by name."""


SIZES = {
    "width": ("width", "dim", "d_model", "embed_dim", "hidden_size", "head_dim", "d_head", "d"),
    "heads": ("heads", "num_heads", "n_heads", "n_head", "nhead", "h"),
}
"""What classes call the sizes they are made with."""

OUR_WORDS = {*HowCalled.model_fields} - {"seed"}
"""Words of a function that are always how it is called, also where it has a parameter of that name."""

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


@dataclass(frozen=True)
class Plugin:
    """A mechanism that another package registers: its name, and where it is."""

    name: str
    module: str
    attribute: str
    package: str
    """The package and its version; empty where that is not known."""

    def __str__(self) -> str:
        place = f"{self.module}:{self.attribute}"
        return f"{self.package}, {place}" if self.package else place


@cache
def _plugins() -> tuple[Plugin, ...]:
    """What other packages register; looked for once, since that reads about every installed package."""
    return tuple(
        Plugin(
            entry_point.name,
            entry_point.module,
            entry_point.attr,
            f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist is not None else "",
        )
        for entry_point in entry_points(group=GROUP)
    )


def _names() -> list[str]:
    return sorted({plugin.name for plugin in _plugins()})


def installed() -> dict[str, Plugin]:
    """The mechanisms that other packages register, by name; nothing of theirs is imported."""
    return {name: _installed(name) for name in _names()}


def _installed(name: str) -> Plugin:
    """The one that is registered by that name; a second one, or a mechanism of ours, is a clash."""
    places = {(plugin.module, plugin.attribute): plugin for plugin in _plugins() if plugin.name == name}
    others = [*(["separatrix itself"] if name in MECHANISMS else []), *map(str, places.values())]
    if len(others) > 1:
        raise UsageError(
            f"{name} is the name of several mechanisms, of {' and of '.join(others)}; remove one"
        )
    return next(iter(places.values()))


def mechanism_from(source: Any, **how: Any) -> Mechanism:
    """A mechanism from its name, `module:attribute` (or `folder/file.py:attribute`), or the thing itself.

    One's own takes how it is called, `width`, `heads` and `scale`, the `seed` of weights that are drawn when
    it is made, and, in the words, what a class is made with: `mine:attend:scale=sqrt`,
    `mine:Module:dim=64,seed=3`.

    >>> mechanism_from("power:beta=4")
    <mechanism power:beta=4>
    """
    given = {name: value for name, value in how.items() if value is not None}
    if given:
        return _called_with(source, given)
    if isinstance(source, Mechanism):
        return source
    if not isinstance(source, str):
        return wrap(source)
    if marked := MARKED.fullmatch(source):
        return _weighted(source, marked[1])
    name, _, rest = source.partition(":")
    if name.endswith(".py") and rest:
        return mechanism_from(f"{name.removesuffix('.py')}:{rest}")
    if name in _names() and (not rest or "=" in rest):
        return _of_package(_installed(name), source)
    if name in MECHANISMS:
        return mechanism_named(source)
    attribute, _, words = rest.partition(":")
    if not attribute or "=" in attribute:
        require_known("mechanism", name, [*MECHANISMS, *_names()])
    module, folder, path = module_of(name), folder_of(name), spelled_path(name)
    try:
        there = OWN.name(module, folder)
    except Ambiguous as error:
        raise UsageError(f"{source}: {error}") from None
    if folder is not None and not there:
        raise UsageError(f"{source}: there is no {name}.py; folders count from the current one, {Path.cwd()}")
    found = _imported(module, attribute, f"{path}:{attribute}")
    return _made(found, f"{path}:{attribute}", read_words(words.split(",") if words else []))


def _made(found: Any, name: str, given: Mapping[str, str]) -> Mechanism:
    """A user's own, made or called with the words that it takes; the others are how it is called.

    A class, or a function that makes a mechanism, gets a width or heads that are given by the name it has for
    them, where it needs them.
    """
    if isinstance(found, Mechanism) or not callable(found):
        if given and isinstance(found, Mechanism):
            raise UsageError(f"{name} takes no parameters, but {', '.join(given)} was given")
        return wrap(found, name)
    if isinstance(found, type) and issubclass(found, Mechanism):
        return found(**given)
    signature = signature_of(found)
    parameters = {} if signature is None else dict(signature.parameters)
    makes = isinstance(found, type) or _makes_one(found, parameters, given)
    if not makes:
        parameters = dict(list(parameters.items())[3:])
    ours = {*OPTIONS, *(() if makes else OUR_WORDS)}
    own = {each: word for each, word in given.items() if each in parameters and each not in ours}
    how: dict[str, object] = {each: word for each, word in given.items() if each not in own}
    if makes:
        for size, names in SIZES.items():
            need = [each for each in names if each in parameters and each not in own]
            if size in how and need and parameters[need[0]].default is inspect.Parameter.empty:
                own[need[0]] = str(how.pop(size))
    for each in how:
        require_known(f"parameter of {name} called", each, [*parameters, *HowCalled.model_fields])
    options = {each: _value(word) for each, word in own.items()}
    if makes:
        made, how = draw(lambda: _instance(found, name, options, parameters), name, how)
        if isinstance(made, Mechanism):
            return called_with(made, how) if how else made
        return wrapped(made, name, how, own)
    bound = update_wrapper(partial(found, **options), found) if options else found
    return wrap(bound, name, how, own)


def _makes_one(found: Any, parameters: Mapping[str, inspect.Parameter], given: Mapping[str, str]) -> bool:
    """Whether it is a function that makes a mechanism: it cannot be given q, k and v, or need not be."""
    kinds = {parameter.kind for parameter in parameters.values()}
    places = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [parameter for parameter in parameters.values() if parameter.kind in places][:3]
    needed = {
        parameter.name for parameter in parameters.values() if parameter.default is inspect.Parameter.empty
    }
    sized = {name for size, names in SIZES.items() if size in given for name in names}
    attends = len(first) == 3 and needed.issuperset(each.name for each in first)
    return (
        inspect.isroutine(found)
        and not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        and not attends
        and needed <= {*given, *sized}
    )


def _instance(
    make: Callable[..., Any], name: str, options: Mapping[str, object], known: Mapping[str, Any]
) -> Any:
    """What a user's class or function makes; what a class still needs is told in the words to type."""
    empty, single = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [each for each, it in known.items() if it.default is empty and it.kind is single]
    if missing := [each for each in needed if each not in options]:
        words = ",".join(f"{each}=…" for each in needed)
        raise UsageError(
            f"{make.__name__} is a class; give an instance, or what it needs: {name}:{words} "
            f"({' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing)"
        )
    try:
        return make(**options)
    except (Exception, SystemExit) as error:
        what = "is a class, and making one of it" if isinstance(make, type) else "makes one, and that"
        raise UsageError(f"{name} {what} fails: {_told(error)}") from None


def _told(error: BaseException) -> str:
    """An error, and the line of the user's that raised it."""
    where = user_source_line(error)
    return f"{type(error).__name__}: {one_line(error)}" + (f" ({where})" if where else "")


def _called_with(source: Any, how: dict[str, Any]) -> Mechanism:
    """A user's own, called with this width, these heads, this scale; a class may be made with them."""
    if not isinstance(source, str | Mechanism):
        return tried(wrap(source, how=how), how)
    module, _, rest = source.partition(":") if isinstance(source, str) else ("", "", "")
    if not rest or module in MECHANISMS or module in _names():
        return tried(called_with(mechanism_from(source), how), how)
    words = ",".join(f"{name}={value}" for name, value in how.items())
    return tried(mechanism_from(f"{source}{',' if ':' in rest else ':'}{words}"), how)


def mechanisms_from(source: Any) -> list[Mechanism]:
    """Mechanisms from `"softmax,linear"`, a list of what `mechanism_from` takes, or one such thing.

    >>> mechanisms_from("softmax,power:beta=4")
    [<mechanism softmax>, <mechanism power:beta=4>]
    """
    found = [mechanism_from(name) for name in listed_mechanisms(source)]
    if not found:
        raise UsageError("name a mechanism, for example softmax")
    return found


def _weighted(source: str, name: str) -> Mechanism:
    """The mechanism `name` with the weights that the mark at the end of `source` is of."""
    found = mechanism_from(name)
    if found.spelled != source:
        raise UsageError(
            f"{name} has other weights here ({found.spelled}) than were asked for ({source}); "
            "let it load them, or draw them with a seed"
        )
    return found


def _of_package(plugin: Plugin, source: str) -> Mechanism:
    """A mechanism of another package: a class is made with the parameters, a function is called with them."""
    found = _imported(plugin.module, plugin.attribute, plugin.name)
    words = source.partition(":")[2]
    given = read_words(words.split(",") if words else [])
    if isinstance(found, type) and issubclass(found, Mechanism) and found.name != plugin.name:
        raise UsageError(f"{plugin.name}: {plugin} calls itself {found.name}; both must be the same")
    return _made(found, plugin.name, given)


def _value(text: str) -> object:
    """A number or a flag from a word, or the word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"yes": True, "no": False}.get(text, text)


def _imported(module: str, attribute: str, source: str) -> Any:
    """The attribute of a module; whatever goes wrong is told in one line."""
    try:
        with seeded():  # weights that are drawn there are the same in every command
            found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise UsageError(
                f"{source}: importing {module} needs {error.name}, which is not installed"
            ) from None
        near = nearest(module, [*MECHANISMS, *_names()])
        raise UsageError(
            f"{source}: there is no module {module} here and no mechanism of that name{near}"
        ) from None
    except (Exception, SystemExit) as error:
        raise UsageError(f"{source}: importing {module} fails: {_told(error)}") from None
    for part in attribute.split("."):
        if part not in dir(found):
            public = [each for each in dir(found) if not each.startswith("_")]
            raise UsageError(f"{source}: {module} has no {attribute}{nearest(part, public)}")
        found = getattr(found, part)
    return found
