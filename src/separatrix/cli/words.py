"""The `name=value` words of a command that asks about a construction."""

from __future__ import annotations

from collections.abc import Collection


def read_parameters(construction: str, words: list[str] | None, options: Collection[str]) -> dict[str, str]:
    """The words by name. One of `options` is refused, unless the construction has a parameter called so."""
    from separatrix.constructions import construction_named
    from separatrix.parameters import read_words, refuse_options

    parameters = read_words(words or [])
    single = {name: value for name, value in parameters.items() if ":" not in value}
    known = construction_named(construction).schema.model_fields
    refuse_options(single, known, {name: f"--{name} " for name in options})
    return parameters
