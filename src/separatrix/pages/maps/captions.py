"""Texts about a map: its title, sentences, and the commands that compute it or one of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from separatrix.analysis.maps import Layer, Map
from separatrix.analysis.maps.quantities import PROBABILITIES, Accuracy, parse_quantity, quantity_label
from separatrix.core.numbers.spelling import for_people
from separatrix.exact.engines import Sampling
from separatrix.pages.commands import spell_value

READER_NOTE = (
    "P is the probability over the random signs of this reader, at its threshold; another reader may tell "
    "more or less apart."
)
ACCURACY_NOTE = (
    "The accuracy is that of the best possible reader of these rows, which knows everything but the label; 1/2 is "
    "a guess. What holds for one row does not hold for all rows together."
)
MIN_DISTINGUISHES, MAX_BLIND = 0.99, 0.01
"""The probabilities from which on a mechanism distinguishes, and up to which it is blind."""


def title(result: Map) -> str:
    """Return the quantity and the construction."""
    return f"{quantity_label(result.quantity)} on {result.construction}"


def describe(result: Map) -> str:
    """Return the quantity and the axes."""
    quantity = f"difference of {title(result)}" if result.difference else title(result)
    return f"{quantity[:1].upper()}{quantity[1:]}: {result.x.name} across, {result.y.name} up"


def finding(result: Map) -> str:
    """Return which mechanisms distinguish on which share of the map; of other quantities, their range."""
    parts = _shares(result) if result.quantity == "distinguish" and not result.difference else _ranges(result)
    line = "; ".join(parts) or f"nothing on this map of {result.construction} could be computed"
    return f"{line[:1].upper()}{line[1:]}"


def _shares(result: Map) -> list[str]:
    values = {layer.mechanism: finite for layer in result.layers if (finite := _finite(layer)).size}
    blind = [name for name, finite in values.items() if finite.max() <= MAX_BLIND]
    shares = {name: float(np.mean(finite >= MIN_DISTINGUISHES)) for name, finite in values.items() if name not in blind}
    everywhere = "at every n shown" if "n" in (result.x.name, result.y.name) else "everywhere on this map"
    parts = [f"{'linear attention' if name == 'linear' else name} is blind {everywhere}" for name in blind]
    if shares:
        (first, share), *other_shares = shares.items()
        more = "".join(f", {name} on {other_share:.0%}" for name, other_share in other_shares)
        parts.append(f"{first} tells D0 from D1 on {share:.0%} of the map{more}")
    return parts


def _ranges(result: Map) -> list[str]:
    parts = []
    for layer in result.panels:
        values = _finite(layer)
        if values.size:
            low, high = for_people(float(values.min()), 3), for_people(float(values.max()), 3)
            span, label = low if low == high else f"{low} to {high}", quantity_label(result.quantity)
            needs = f"needs {span} bits" if result.quantity == "bits" else f"has {label} {span}"
            parts.append(f"{layer.mechanism} {needs}")
    return parts


def _finite(layer: Layer) -> np.ndarray[Any, Any]:
    return layer.values[np.isfinite(layer.values)]


def describe_fixed(values: Mapping[str, object], defaults: Mapping[str, object]) -> list[str]:
    """Return sentences on the fixed parameters, and on those that are defaults of the reference point.

    >>> describe_fixed({"d": 102, "m": 12}, {"m": 12})
    ['Fixed: d=102 m=12.', 'Not given, so taken from the reference point: m=12.']
    >>> describe_fixed({"m": 12}, {"m": 12})
    ['Fixed, and taken from the reference point since not given: m=12.']
    """
    words = join_words(values)
    if defaults and set(defaults) == set(values):
        return [f"Fixed, and taken from the reference point since not given: {words}."]
    return [
        *([f"Fixed: {words}."] if words else []),
        *([f"Not given, so taken from the reference point: {join_words(defaults)}."] if defaults else []),
    ]


def join_words(values: Mapping[str, object]) -> str:
    """Return parameters as they are typed: `d=102 m=12`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def fixed_values(result: Map) -> dict[str, str]:
    """Return the parameters that are the same everywhere; n as it is used."""
    lengths, values = result.grid.n, dict(result.question.fixed)
    if lengths is not None and lengths.size == 1 and "n" in values:
        values["n"] = lengths.item()
    return {name: spell_value(value) for name, value in values.items()}


def sampling_options(result: Map) -> list[tuple[str, str]]:
    """Return the options with which `separatrix verdict` answers as the map does."""
    usual = Sampling()
    engine = [] if result.engine == "auto" else [("engine", result.engine)]
    names = ("draws", "seed", "confidence", "dtype")
    changed_names = [name for name in names if getattr(result.sampling, name) != getattr(usual, name)]
    return [*engine, *((name, str(getattr(result.sampling, name))) for name in changed_names)]


def place(result: Map) -> dict[str, Any]:
    """Return the command of the map in the form that address.js has: names, words and options."""
    axes = {axis.name: axis.span.text for axis in (result.x, result.y)}
    words = {**axes, **{name: spell_value(value) for name, value in result.question.fixed.items()}}
    quantity = [] if result.quantity == "distinguish" else [("of", result.quantity)]
    difference = [("difference", "yes")] if result.difference else []
    return {
        "command": "map",
        "names": [result.construction, ",".join(question.label for question in result.questions)],
        "words": list(words.items()),
        "options": [*quantity, *difference, *sampling_options(result)],
    }


def made_by(result: Map) -> str:
    """Return the command that computes the map."""
    parts = place(result)
    options = (f"--{name}" if value == "yes" else f"--{name} {value}" for name, value in parts["options"])
    words = (f"{name}={value}" for name, value in parts["words"])
    return " ".join(["separatrix map", *parts["names"], *words, *options])


def command(result: Map, layer: int, cell: tuple[int, int]) -> str:
    """Return the command that computes one cell of one layer."""
    question, point = result.questions[layer], result.grid.at(cell)
    own_words = ",".join(f"{name}={spell_value(value)}" for name, value in point.items() if question.is_own(name))
    # `power:beta=4`, and after a comma if the label has parameters already.
    separator = "," if ":" in question.label else ":"
    mechanism = f"{question.label}{separator}{own_words}" if own_words else question.label
    values = {**point, **{name: value for name, value in result.question.fixed.items() if name not in point}}
    words = [f"{name}={spell_value(value)}" for name, value in values.items() if not question.is_own(name)]
    options = [f"--{name} {value}" for name, value in sampling_options(result)]
    quantity, verb = parse_quantity(result.quantity), "verdict"
    if isinstance(quantity, Accuracy):
        verb, options = "readers", [f"--noise {spell_value(quantity.noise)}"]
    return " ".join([f"separatrix {verb}", result.construction, mechanism, *words, *options])


def sentences(result: Map) -> list[str]:
    """Return what has to be known to read the map."""
    formulas = dict.fromkeys(layer.formula[0] for layer in result.panels if layer.formula)
    lines = [
        *describe_fixed(fixed_values(result), result.question.taken),
        READER_NOTE if result.quantity in PROBABILITIES else "",
        ACCURACY_NOTE if result.quantity.startswith("accuracy") else "",
        result.length_remark,
        *(f"{layer.mechanism}: {layer.engine}, {layer.evidence}. {layer.remark}".strip() for layer in result.layers),
        *(f"{formula.formula} {formula.tag} holds {formula.limit}." for formula in formulas),
    ]
    return [line for line in lines if line]
