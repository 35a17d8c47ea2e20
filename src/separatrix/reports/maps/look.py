"""What pictures and pages of maps share: headings, colours, lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.engines import Sampling
from separatrix.maps import PROBABILITIES, QUANTITIES, Analytic, Axis, Layer, Map, Question, Span, analytic
from separatrix.reports.commands import spelled

Array = np.ndarray[Any, Any]

READER = "P is over the random signs of this reader, at its threshold; another reader may see more or less."
MANY_DECADES = 1e3
"""A margin that spans more than this factor is coloured by its logarithm."""


@dataclass(frozen=True)
class Scale:
    """What colours stand for, the same for every panel."""

    label: str
    low: float
    high: float
    colours: str
    log: bool = False

    def shade(self, values: Array) -> Array:
        """The numbers that are coloured; what is not finite has no colour."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = np.log10(values) if self.log else values
        return np.where(np.isfinite(shown), shown, np.nan)


def scale(found: Map) -> Scale:
    """Probabilities from 0 to 1, differences around 0, all else from its smallest to its largest value."""
    name = QUANTITIES[found.of]
    values = np.concatenate([layer.values[np.isfinite(layer.values)] for layer in found.shown])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if found.difference:
        reach = 1.0 if found.of in PROBABILITIES else max(abs(low), abs(high)) or 1.0
        return Scale(f"difference of {name}", -reach, reach, "RdBu")
    if found.of in PROBABILITIES:
        return Scale(name, 0.0, 1.0, "cividis")
    if found.of == "margin" and low > 0 and high > MANY_DECADES * low:
        return Scale("log₁₀ of the margin", float(np.log10(low)), float(np.log10(high)), "cividis", True)
    return Scale(name, low, high if high > low else low + 1, "cividis")


def title(found: Map) -> str:
    """What the map is of."""
    return f"{QUANTITIES[found.of]} on {found.construction.name}"


def fixed_words(found: Map) -> str:
    """The parameters that are the same everywhere; n as it is used."""
    used = found.places.n
    values = dict(found.fixed)
    if used is not None and used.size == 1 and "n" in values:
        values["n"] = used.item()
    return " ".join(f"{name}={spelled_value(value)}" for name, value in values.items())


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
    fixed = [f"{name}={spelled_value(value)}" for name, value in found.fixed.items()]
    mechanisms = ",".join(each.label for each in found.questions)
    of = [] if found.of == "distinguish" else [f"--of {found.of}"]
    rest = [*of, "--difference"] if found.difference else of
    words = ["separatrix map", found.construction.name, mechanisms, *axes, *fixed, *rest, options(found)]
    return " ".join(words).strip()


def command(found: Map, layer: int, cell: tuple[int, int]) -> str:
    """The command that computes one cell of one layer again."""
    asked, chosen = found.questions[layer], found.places.at(cell)
    own = [f"{name}={spelled_value(value)}" for name, value in chosen.items() if asked.is_own(name)]
    mechanism = (
        f"{asked.label}{':' if ':' not in asked.label else ','}{','.join(own)}" if own else asked.label
    )
    values = {**chosen, **{name: value for name, value in found.fixed.items() if name not in chosen}}
    words = [f"{name}={spelled_value(value)}" for name, value in values.items() if not asked.is_own(name)]
    return " ".join(
        ["separatrix verdict", found.construction.name, mechanism, *words, options(found)]
    ).strip()


def spelled_value(value: object) -> str:
    """A parameter as one would type it."""
    return str(value) if isinstance(value, str) else spelled(value)  # type: ignore[arg-type]


def lines(found: Map, layer: Layer) -> dict[str, list[tuple[Array, Array]]]:
    """Named lines to draw over a panel: where P is one half, and the boundary that is known as a formula."""
    drawn: dict[str, list[tuple[Array, Array]]] = {}
    if found.of in PROBABILITIES and not found.difference:
        drawn["P = 1/2"] = contour(found.x, found.y, layer.values - 0.5)
    formula = known_formula(found, layer)
    if formula is not None:
        drawn[f"{formula.formula} {formula.tag}"] = contour(found.x, found.y, _excess(found, layer, formula))
    return {name: each for name, each in drawn.items() if each}


def known_formula(found: Map, layer: Layer) -> Analytic | None:
    """The formula of the boundary; None where none is known, or where the map is of something else."""
    asked = _question(found, layer)
    if asked is None or found.of != "distinguish":
        return None
    return analytic(found.construction, asked.mechanism(found.places.at((0, 0))), found.fixed.get("form"))


def _question(found: Map, layer: Layer) -> Question | None:
    return next((each for each in found.questions if each.label == layer.mechanism), None)


def _excess(found: Map, layer: Layer, formula: Analytic) -> Array:
    """The formula over the whole plane."""
    asked = _question(found, layer)
    assert asked is not None
    mesh = {found.x.name: found.x.floats[None, :], found.y.name: found.y.floats[:, None]}
    values: Mapping[str, Any] = {**asked.numbers(found.places.at((0, 0))), **mesh}
    return np.broadcast_to(formula.excess(values), found.places.shape)


def contour(x: Axis, y: Axis, values: Array) -> list[tuple[Array, Array]]:
    """The zero line of `values` over the plane, in pieces."""
    from matplotlib.figure import Figure

    if not (np.nanmin(values, initial=0) < 0 < np.nanmax(values, initial=0)):
        return []
    across, up = (np.log10(axis.floats) if axis.log else axis.floats for axis in (x, y))
    found = Figure().subplots().contour(across, up, np.ma.masked_invalid(values), levels=[0])
    pieces = [np.asarray(piece) for piece in found.allsegs[0] if len(piece) > 1]
    back = [(lambda v: 10**v) if axis.log else (lambda v: v) for axis in (x, y)]
    return [(back[0](piece[:, 0]), back[1](piece[:, 1])) for piece in pieces]


def axis_label(axis: Axis | Span) -> str:
    """An axis' name and what it is counted in."""
    units = {"a0": "√(log n)", "a1": "√(log n)", "b": "√(log n)", "c": "√(log n)", "r_Q": "√(log n)"}
    return f"{axis.name}, in units of {units[axis.name]}" if axis.name in units else axis.name


def sentences(found: Map) -> list[str]:
    """What a reader must know of the map, in whole sentences."""
    formulas = dict.fromkeys(known_formula(found, layer) for layer in found.shown)
    said = [
        f"Fixed: {fixed_words(found)}." if found.fixed else "",
        READER if found.of in PROBABILITIES else "",
        found.places.remark,
        *(
            f"{each.mechanism}: {each.engine}, {each.evidence}. {each.remark}".strip()
            for each in found.layers
        ),
        *(f"{each.formula} {each.tag} holds {each.limit}." for each in formulas if each is not None),
    ]
    return [each for each in said if each]
