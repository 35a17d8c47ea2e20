"""What is said of a map: headings, sentences, and the commands that compute it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from separatrix.analysis.maps import PROBABILITIES, QUANTITIES, Layer, Map
from separatrix.core.numbers.spelling import for_people
from separatrix.exact.engines import Sampling
from separatrix.pages.commands import spelled

READER = "P is over the random signs of this reader, at its threshold; another reader may see more or less."
TELLS, BLIND = 0.99, 0.01
"""What counts as telling D0 from D1 on a map, and as blind."""


def title(found: Map) -> str:
    """What the map is of."""
    return f"{QUANTITIES[found.quantity]} on {found.construction}"


def what(found: Map) -> str:
    """What the map is of, with its axes."""
    of = f"difference of {title(found)}" if found.difference else title(found)
    return f"{of[:1].upper()}{of[1:]}: {found.x.name} across, {found.y.name} up"


def finding(found: Map) -> str:
    """Who tells D0 from D1 on how much of the map; of another quantity, between which numbers it lies."""
    said = _shares(found) if found.quantity == "distinguish" and not found.difference else _ranges(found)
    line = "; ".join(said) or f"nothing on this map of {found.construction} could be computed"
    return f"{line[:1].upper()}{line[1:]}"


def _shares(found: Map) -> list[str]:
    """Who is blind wherever an answer is known, and on which share of the map the others tell D0 from D1."""
    known = {layer.mechanism: values for layer in found.layers if (values := _finite(layer)).size}
    blind = [name for name, values in known.items() if values.max() <= BLIND]
    shares = {name: float(np.mean(values >= TELLS)) for name, values in known.items() if name not in blind}
    where = "at every n shown" if "n" in (found.x.name, found.y.name) else "everywhere on this map"
    said = [f"{'linear attention' if name == 'linear' else name} is blind {where}" for name in blind]
    if shares:
        (first, share), *others = shares.items()
        more = "".join(f", {name} on {part:.0%}" for name, part in others)
        said.append(f"{first} tells D0 from D1 on {share:.0%} of the map{more}")
    return said


def _ranges(found: Map) -> list[str]:
    """The least and the largest value of every panel."""
    said = []
    for each in found.panels:
        values = _finite(each)
        if values.size:
            low, high = for_people(float(values.min()), 3), for_people(float(values.max()), 3)
            span = low if low == high else f"{low} to {high}"
            name = QUANTITIES[found.quantity]
            is_ = f"takes {span} bits" if found.quantity == "bits" else f"has {name} {span}"
            said.append(f"{each.mechanism} {is_}")
    return said


def _finite(layer: Layer) -> np.ndarray[Any, Any]:
    return layer.values[np.isfinite(layer.values)]


def fixed(values: Mapping[str, object], taken: Mapping[str, object]) -> list[str]:
    """Sentences on what is the same everywhere, and on what of it was not given.

    >>> fixed({"d": 102, "m": 12}, {"m": 12})
    ['Fixed: d=102 m=12.', 'Not given, so taken from the reference point: m=12.']
    >>> fixed({"m": 12}, {"m": 12})
    ['Fixed, and taken from the reference point since not given: m=12.']
    """
    words = " ".join(f"{name}={value}" for name, value in values.items())
    if taken and set(taken) == set(values):
        return [f"Fixed, and taken from the reference point since not given: {words}."]
    not_given = " ".join(f"{name}={value}" for name, value in taken.items())
    return [
        *([f"Fixed: {words}."] if words else []),
        *([f"Not given, so taken from the reference point: {not_given}."] if not_given else []),
    ]


def fixed_words(found: Map) -> str:
    """The parameters that are the same everywhere, in a line."""
    return " ".join(f"{name}={value}" for name, value in fixed_values(found).items())


def fixed_values(found: Map) -> dict[str, str]:
    """The parameters that are the same everywhere; n as it is used."""
    used = found.grid.n
    values = dict(found.question.fixed)
    if used is not None and used.size == 1 and "n" in values:
        values["n"] = used.item()
    return {name: spelled(value) for name, value in values.items()}


def options(found: Map) -> str:
    """The options that make `separatrix verdict` answer as the map does."""
    chosen, usual = found.sampling, Sampling()
    words = [] if found.engine == "auto" else [f"--engine {found.engine}"]
    names = ("draws", "seed", "confidence", "dtype")
    changed = [name for name in names if getattr(chosen, name) != getattr(usual, name)]
    return " ".join([*words, *(f"--{name} {getattr(chosen, name)}" for name in changed)])


def made_by(found: Map) -> str:
    """The command that makes the whole map again."""
    axes = [axis.span.spelled for axis in (found.x, found.y)]
    fixed = [f"{name}={spelled(value)}" for name, value in found.question.fixed.items()]
    mechanisms = ",".join(question.label for question in found.questions)
    of = [] if found.quantity == "distinguish" else [f"--of {found.quantity}"]
    rest = [*of, "--difference"] if found.difference else of
    words = ["separatrix map", found.construction, mechanisms, *axes, *fixed, *rest, options(found)]
    return " ".join(words).strip()


def command(found: Map, layer: int, cell: tuple[int, int]) -> str:
    """The command that computes one cell of one layer again."""
    asked, chosen = found.questions[layer], found.grid.at(cell)
    own = [f"{name}={spelled(value)}" for name, value in chosen.items() if asked.is_own(name)]
    mechanism = (
        f"{asked.label}{':' if ':' not in asked.label else ','}{','.join(own)}" if own else asked.label
    )
    values = {**chosen, **{name: value for name, value in found.question.fixed.items() if name not in chosen}}
    words = [f"{name}={spelled(value)}" for name, value in values.items() if not asked.is_own(name)]
    return " ".join(["separatrix verdict", found.construction, mechanism, *words, options(found)]).strip()


def sentences(found: Map) -> list[str]:
    """What a reader must know of the map, in whole sentences."""
    formulas = dict.fromkeys(layer.formula[0] for layer in found.panels if layer.formula)
    said = [
        *fixed(fixed_values(found), found.question.taken),
        READER if found.quantity in PROBABILITIES else "",
        found.length_remark,
        *(
            f"{layer.mechanism}: {layer.engine}, {layer.evidence}. {layer.remark}".strip()
            for layer in found.layers
        ),
        *(f"{formula.formula} {formula.tag} holds {formula.limit}." for formula in formulas),
    ]
    return [each for each in said if each]
