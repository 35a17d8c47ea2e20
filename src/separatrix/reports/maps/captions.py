"""What is said of a map: headings, sentences, and the commands that compute it again."""

from __future__ import annotations

from collections.abc import Container

from separatrix.engines import Sampling
from separatrix.maps import PROBABILITIES, QUANTITIES, Map
from separatrix.reports.commands import spelled

READER = "P is over the random signs of this reader, at its threshold; another reader may see more or less."


def title(found: Map) -> str:
    """What the map is of."""
    return f"{QUANTITIES[found.of]} on {found.construction.name}"


def fixed_words(found: Map, told: Container[str] = ()) -> str:
    """The parameters that are the same everywhere, but for those told elsewhere; n as it is used."""
    used = found.places.n
    values = dict(found.fixed)
    if used is not None and used.size == 1 and "n" in values:
        values["n"] = used.item()
    return " ".join(f"{name}={spelled(value)}" for name, value in values.items() if name not in told)


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
    fixed = [f"{name}={spelled(value)}" for name, value in found.fixed.items()]
    mechanisms = ",".join(each.label for each in found.questions)
    of = [] if found.of == "distinguish" else [f"--of {found.of}"]
    rest = [*of, "--difference"] if found.difference else of
    words = ["separatrix map", found.construction.name, mechanisms, *axes, *fixed, *rest, options(found)]
    return " ".join(words).strip()


def command(found: Map, layer: int, cell: tuple[int, int]) -> str:
    """The command that computes one cell of one layer again."""
    asked, chosen = found.questions[layer], found.places.at(cell)
    own = [f"{name}={spelled(value)}" for name, value in chosen.items() if asked.is_own(name)]
    mechanism = (
        f"{asked.label}{':' if ':' not in asked.label else ','}{','.join(own)}" if own else asked.label
    )
    values = {**chosen, **{name: value for name, value in found.fixed.items() if name not in chosen}}
    words = [f"{name}={spelled(value)}" for name, value in values.items() if not asked.is_own(name)]
    return " ".join(
        ["separatrix verdict", found.construction.name, mechanism, *words, options(found)]
    ).strip()


def sentences(found: Map) -> list[str]:
    """What a reader must know of the map, in whole sentences."""
    formulas = dict.fromkeys(known[0] for known in map(found.boundary_formula, found.shown) if known)
    said = [
        f"Fixed: {given}." if (given := fixed_words(found, found.questions[0].taken)) else "",
        found.questions[0].reference_remark,
        READER if found.of in PROBABILITIES else "",
        found.places.remark,
        *(
            f"{each.mechanism}: {each.engine}, {each.evidence}. {each.remark}".strip()
            for each in found.layers
        ),
        *(f"{each.formula} {each.tag} holds {each.limit}." for each in formulas),
    ]
    return [each for each in said if each]
