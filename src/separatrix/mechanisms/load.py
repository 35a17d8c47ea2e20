"""The registered mechanisms, and loading one from a name or from the `module:attribute` of a user."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial, update_wrapper
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from separatrix.core.errors import one_line, user_source_line
from separatrix.core.parameters import UsageError, listed_mechanisms, nearest, read_words, require_known
from separatrix.core.registry import by_name, find_classes, modules
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.custom import CustomMechanism, require_sizes, with_call_options, wrap
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
"""Usual names of these sizes among the arguments of classes."""

CALL_OPTIONS = {*HowCalled.model_fields} - {"seed"}
"""Words that always tell how a function is called, even if it has a parameter of that name."""

FIRST = "kernels"
"""The folder listed before the others: softmax and linear, which all are compared with."""


def find_mechanisms(package: ModuleType) -> dict[str, type[Mechanism]]:
    """Return every mechanism in the folders of a package, by name; sorted by folder, then by name."""
    families = sorted(modules(package, folders=True), key=lambda family: family.__name__.split(".")[-1] != FIRST)
    folders = (sorted(find_classes(family, Mechanism), key=lambda kind: kind.name) for family in families)
    return by_name((mechanism for folder in folders for mechanism in folder), "mechanisms")


MECHANISMS: dict[str, type[Mechanism]] = find_mechanisms(sys.modules["separatrix.mechanisms"])
"""All mechanisms defined in the folders of the families, by name."""


def examples() -> list[Mechanism]:
    """Return one instance of each registered mechanism."""
    return [mechanism(**mechanism.example) for mechanism in MECHANISMS.values()]


def mechanism_named(text: str) -> Mechanism:
    """Return the mechanism of a name with parameters: `softmax`, `power:beta=4`.

    >>> mechanism_named("power:beta=4")
    <mechanism power:beta=4>
    """
    name, _, words = text.partition(":")
    require_known("mechanism", name, MECHANISMS)
    return MECHANISMS[name](**read_words(words.split(",") if words else []))


@cache
def _plugins() -> tuple[EntryPoint, ...]:
    """Return the mechanisms that other packages register."""
    # Cached, since this reads the metadata of every installed package.
    return tuple(entry_points(group=GROUP))


def _plugin_names() -> list[str]:
    return sorted({plugin.name for plugin in _plugins()})


def installed() -> dict[str, EntryPoint]:
    """Return the mechanisms that other packages register, by name, without importing them."""
    return {name: _find_plugin(name) for name in _plugin_names()}


def describe_plugin(plugin: EntryPoint) -> str:
    """Return the package of a mechanism, with its version if it is known, and the place in it."""
    return f"{plugin.dist.name} {plugin.dist.version}, {plugin.value}" if plugin.dist else plugin.value


def _find_plugin(name: str) -> EntryPoint:
    """Return the plugin of this name; a second one, or a mechanism of ours, is an error."""
    # A package installed twice, as in an environment above another one, registers the same place twice.
    places = {plugin.value: plugin for plugin in _plugins() if plugin.name == name}
    owners = [*(["separatrix itself"] if name in MECHANISMS else []), *map(describe_plugin, places.values())]
    if len(owners) > 1:
        raise UsageError(f"{name} is the name of several mechanisms, of {' and of '.join(owners)}; remove one")
    return next(iter(places.values()))


def mechanism_from(source: Any, **call_options: Any) -> Mechanism:
    """Return a mechanism from its name, `module:attribute` (or `folder/file.py:attribute`), or the callable.

    A user's own takes the options of its call, `width`, `heads` and `scale`, the `seed` of weights that it
    draws when it is created, and, in the words, the arguments of a class: `mine:attend:scale=sqrt`,
    `mine:Module:dim=64,seed=3`.

    >>> mechanism_from("power:beta=4")
    <mechanism power:beta=4>
    """
    options = {name: value for name, value in call_options.items() if value is not None}
    if options:
        return _load_with_options(source, options)
    if isinstance(source, Mechanism):
        return source
    if not isinstance(source, str):
        return wrap(source)
    if match := MARKED.fullmatch(source):
        return _load_marked(source, match[1])
    name, _, suffix = source.partition(":")
    if name.endswith(".py") and suffix:
        return mechanism_from(f"{name.removesuffix('.py')}:{suffix}")
    # Before our own names, so that a clash of the two is an error and not a silent choice.
    if name in _plugin_names() and (not suffix or "=" in suffix):
        return _load_plugin(_find_plugin(name), source)
    if name in MECHANISMS:
        return mechanism_named(source)
    attribute, _, words = suffix.partition(":")
    if not attribute or "=" in attribute:
        require_known("mechanism", name, [*MECHANISMS, *_plugin_names()])
    module, folder, path = module_of(name), folder_of(name), spelled_path(name)
    try:
        exists = OWN.name(module, folder)
    except Ambiguous as error:
        raise UsageError(f"{source}: {error}") from None
    if folder is not None and not exists:
        raise UsageError(f"{source}: there is no {name}.py; folders count from the current one, {Path.cwd()}")
    attribute_value = _import_attribute(module, attribute, f"{path}:{attribute}")
    return _build(attribute_value, f"{path}:{attribute}", read_words(words.split(",") if words else []))


def _build(source: Any, name: str, words: Mapping[str, str]) -> Mechanism:
    """Return a mechanism from a user's object: `words` are its arguments, or options of its call.

    A class, or a factory function, gets a width or heads under the name that it has for them, if it needs
    them.
    """
    if isinstance(source, Mechanism) or not callable(source):
        if words and isinstance(source, Mechanism):
            raise UsageError(f"{name} takes no parameters, but {', '.join(words)} was given")
        return wrap(source, name)
    if isinstance(source, type) and issubclass(source, Mechanism):
        return source(**words)
    signature = signature_of(source)
    parameters = {} if signature is None else dict(signature.parameters)
    is_factory = isinstance(source, type) or _is_factory(source, parameters, words)
    if not is_factory:
        parameters = dict(list(parameters.items())[3:])  # the first three are q, k and v
    reserved = {*OPTIONS, *(() if is_factory else CALL_OPTIONS)}
    arguments = {key: word for key, word in words.items() if key in parameters and key not in reserved}
    options: dict[str, object] = {key: word for key, word in words.items() if key not in arguments}
    if is_factory:
        for size, names in SIZES.items():
            missing = [key for key in names if key in parameters and key not in arguments]
            if size in options and missing and parameters[missing[0]].default is inspect.Parameter.empty:
                arguments[missing[0]] = str(options.pop(size))
    for option in options:
        require_known(f"parameter of {name} called", option, [*parameters, *HowCalled.model_fields])
    values = {key: _parse_value(word) for key, word in arguments.items()}
    if is_factory:
        instance, options = draw(lambda: _instantiate(source, name, values, parameters), name, options)
        if isinstance(instance, Mechanism):
            return with_call_options(instance, options) if options else instance
        return CustomMechanism(instance, name, options, arguments)
    attend = update_wrapper(partial(source, **values), source) if values else source
    return wrap(attend, name, options, arguments)


def _is_factory(source: Any, parameters: Mapping[str, inspect.Parameter], words: Mapping[str, str]) -> bool:
    """Return whether it is a function that returns a mechanism: it cannot or need not be given q, k and v."""
    kinds = {parameter.kind for parameter in parameters.values()}
    places = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [parameter for parameter in parameters.values() if parameter.kind in places][:3]
    required = {parameter.name for parameter in parameters.values() if parameter.default is inspect.Parameter.empty}
    size_names = {name for size, names in SIZES.items() if size in words for name in names}
    attends = len(first) == 3 and required.issuperset(parameter.name for parameter in first)
    return (
        inspect.isroutine(source)
        and not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        and not attends
        and required <= {*words, *size_names}
    )


def _instantiate(
    make: Callable[..., Any], name: str, values: Mapping[str, object], parameters: Mapping[str, inspect.Parameter]
) -> Any:
    """Call a user's class or factory; an error names the arguments that are missing, as words to type."""
    empty, single = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = [key for key, it in parameters.items() if it.default is empty and it.kind is single]
    if missing := [key for key in required if key not in values]:
        words = ",".join(f"{key}=…" for key in required)
        raise UsageError(
            f"{make.__name__} is a class; give an instance, or what it needs: {name}:{words} "
            f"({' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing)"
        )
    try:
        return make(**values)
    except (Exception, SystemExit) as error:
        step = "is a class, and making one of it" if isinstance(make, type) else "makes one, and that"
        raise UsageError(f"{name} {step} fails: {_describe_error(error)}") from None


def _describe_error(error: BaseException) -> str:
    """Return an error, and the line of the user's code that raised it."""
    line = user_source_line(error)
    return f"{type(error).__name__}: {one_line(error)}" + (f" ({line})" if line else "")


def _load_with_options(source: Any, options: dict[str, Any]) -> Mechanism:
    """Return a user's mechanism with these options of its call; a class may take them as arguments."""
    if not isinstance(source, str | Mechanism):
        return require_sizes(wrap(source, how=options), options)
    module, _, suffix = source.partition(":") if isinstance(source, str) else ("", "", "")
    if not suffix or module in MECHANISMS or module in _plugin_names():
        return require_sizes(with_call_options(mechanism_from(source), options), options)
    # As words, so that `_build` decides which of them are arguments of a class.
    words = ",".join(f"{name}={value}" for name, value in options.items())
    return require_sizes(mechanism_from(f"{source}{',' if ':' in suffix else ':'}{words}"), options)


def mechanisms_from(source: Any) -> list[Mechanism]:
    """Return mechanisms from `"softmax,linear"`, or from one or a list of sources of `mechanism_from`.

    >>> mechanisms_from("softmax,power:beta=4")
    [<mechanism softmax>, <mechanism power:beta=4>]
    """
    mechanisms = [mechanism_from(name) for name in listed_mechanisms(source)]
    if not mechanisms:
        raise UsageError("name a mechanism, for example softmax")
    return mechanisms


def _load_marked(source: str, name: str) -> Mechanism:
    """Return the mechanism `name`, whose weights must be those that the mark in `source` is of."""
    mechanism = mechanism_from(name)
    if mechanism.spelled != source:
        raise UsageError(
            f"{name} has other weights here ({mechanism.spelled}) than were asked for ({source}); "
            "let it load them, or draw them with a seed"
        )
    return mechanism


def _load_plugin(plugin: EntryPoint, source: str) -> Mechanism:
    """Return a mechanism of another package, with the parameters as its arguments or options of its call."""
    target = _import_attribute(plugin.module, plugin.attr, plugin.name)
    words = source.partition(":")[2]
    is_class = isinstance(target, type) and issubclass(target, Mechanism)
    if is_class and target.name != plugin.name:
        raise UsageError(f"{plugin.name}: {describe_plugin(plugin)} calls itself {target.name}; both must be the same")
    return _build(target, plugin.name, read_words(words.split(",") if words else []))


def _parse_value(text: str) -> object:
    """Return the number or flag that a word spells, or the word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"yes": True, "no": False}.get(text, text)


def _import_attribute(module: str, attribute: str, source: str) -> Any:
    """Return an attribute of a module; every error becomes a UsageError of one line."""
    try:
        with seeded():  # weights that are drawn there are the same in every command
            value: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise UsageError(f"{source}: importing {module} needs {error.name}, which is not installed") from None
        near = nearest(module, [*MECHANISMS, *_plugin_names()])
        raise UsageError(f"{source}: there is no module {module} here and no mechanism of that name{near}") from None
    except (Exception, SystemExit) as error:
        raise UsageError(f"{source}: importing {module} fails: {_describe_error(error)}") from None
    for part in attribute.split("."):
        if part not in dir(value):
            public_names = [name for name in dir(value) if not name.startswith("_")]
            raise UsageError(f"{source}: {module} has no {attribute}{nearest(part, public_names)}")
        value = getattr(value, part)
    return value
