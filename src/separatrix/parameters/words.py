"""`name=value` words, as they are typed on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.parameters.errors import UsageError


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
