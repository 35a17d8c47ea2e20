"""`name=value` words, as they are typed on the command line."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from separatrix.errors import UsageError


def read_words(words: Iterable[str]) -> dict[str, str]:
    """Split `name=value` words; a repeated name is an error, never a silent override.

    >>> read_words(["n=1000", "a0=0.01"])
    {'n': '1000', 'a0': '0.01'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"'{word}' is not of the form name=value")
        if not value.strip():
            raise UsageError(f"'{word}' has no value; write for example {name}=1")
        if name in values:
            raise UsageError(f"{name} is given twice: {name}={values[name]} and {word}; keep one")
        values[name] = value
    return values


def refuse_options(given: Mapping[str, object], known: Container[str], options: Mapping[str, str]) -> None:
    """An option that was written as a parameter is an error, unless `known` has a parameter of that name.

    `options` says how each is written instead.

    >>> refuse_options({"noise": "0.1"}, {"n", "m"}, {"noise": "noise_sd="})
    Traceback (most recent call last):
    separatrix.errors.UsageError: noise is an option; write noise_sd=0.1
    """
    for name, value in given.items():
        if name in options and name not in known:
            raise UsageError(f"{name} is an option; write {options[name]}{value}")


def split_mechanisms(text: str) -> list[str]:
    """Mechanisms separated by commas; parameters of one are separated by commas as well.

    >>> split_mechanisms("softmax,gated:a=1,b=2,linear")
    ['softmax', 'gated:a=1,b=2', 'linear']
    """
    found: list[str] = []
    for part in filter(None, text.split(",")):
        if found and ":" in found[-1] and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found
