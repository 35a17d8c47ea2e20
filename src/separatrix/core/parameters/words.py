"""Parsing of `name=value` words and lists of mechanisms."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from separatrix.core.errors import UsageError


def read_words(
    words: Iterable[str], parameter_names: Container[str] = (), options: Container[str] = ()
) -> dict[str, str]:
    """Split `name=value` words; a repeated name is an error, never a silent override.

    An option written as a parameter is rejected, unless `parameter_names` has a parameter of that name.

    >>> read_words(["n=1000", "a0=0.01"])
    {'n': '1000', 'a0': '0.01'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            likely = f"; did you mean n={word}?" if "n" in parameter_names and word.isdecimal() else ""
            raise UsageError(f"'{word}' is not of the form name=value{likely}")
        if not value.strip():
            raise UsageError(f"'{word}' has no value; write for example {name}=1")
        if name in values:
            raise UsageError(f"{name} is given twice: {name}={values[name]} and {word}; keep one")
        if name in options and name not in parameter_names and ":" not in value:
            raise UsageError(f"{name} is an option; write `{name}` {value}")
        values[name] = value
    return values


def all_parameters(
    parameters: Mapping[str, object] | None,
    named: Mapping[str, object],
    parameter_names: Container[str] = (),
    options: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Merge parameters from a mapping and keyword arguments; names in the mapping are never options.

    `options` gives the option to suggest for names that are parameters of other constructions.

    >>> all_parameters({"n": 3}, {"noise": "0.1"}, {"n", "m"}, {"noise": "noise_sd="})
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: noise is an option; write noise_sd=0.1
    """
    for name, value in named.items():
        if options and name in options and name not in parameter_names:
            raise UsageError(f"{name} is an option; write {options[name]}{value}")
        if name in (parameters or {}):
            raise UsageError(f"{name} is given twice, in the mapping and by name; keep one")
    return {**(parameters or {}), **named}


def split_mechanisms(text: str) -> list[str]:
    """Split a comma-separated list of mechanisms, whose parameters are comma-separated as well.

    >>> split_mechanisms("softmax,gated:a=1,b=2,linear")
    ['softmax', 'gated:a=1,b=2', 'linear']
    """
    mechanisms: list[str] = []
    for part in filter(None, text.split(",")):
        if mechanisms and ":" in mechanisms[-1] and "=" in part and ":" not in part:
            mechanisms[-1] += f",{part}"
        else:
            mechanisms.append(part)
    return mechanisms


def listed_mechanisms(mechanisms: Any) -> list[Any]:
    """Return a list of mechanisms from comma-separated names, a list, or a single object.

    >>> listed_mechanisms("softmax,linear"), listed_mechanisms(["softmax", max]), listed_mechanisms(max)
    (['softmax', 'linear'], ['softmax', <built-in function max>], [<built-in function max>])
    """
    if isinstance(mechanisms, str):
        return list[Any](split_mechanisms(mechanisms))
    return list(mechanisms) if isinstance(mechanisms, list | tuple) else [mechanisms]
