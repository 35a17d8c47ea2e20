"""What a picture of one mechanism says, as sentences made of its numbers.

Three things are kept apart: what one draw of signs shows, P(tells apart) over all draws, and whether a number
format can keep the difference at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from separatrix.analysis.cards.neuron_readings import Received
from separatrix.constructions import Construction
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES, bit_of_difference
from separatrix.core.numbers.spelling import for_people, whole_for_people
from separatrix.exact.engines import STRENGTH, Outcome, strongest
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.outputs._base import Ends
from separatrix.exact.outputs.attention import float_margin
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts.lost_formats import lost_at
from separatrix.exact.verdicts.rounded_outputs import same_number
from separatrix.mechanisms import Mechanism

LARGE_SHARE = 0.01
"""Smaller shares are told as one part in so many."""


@dataclass(frozen=True)
class Difference:
    """How far D0 and D1 are apart in what is read with all signs +."""

    outcome: Outcome | None
    """P(tells apart) and margin, where there is a closed form or few signs: nothing is drawn for it."""
    no_outcome: str
    """Why there is none."""
    same: bool
    """Whether D0 and D1 provably receive the same."""
    bits: float
    """Significant bits that it takes to tell them apart; infinite where float64 shows no difference."""
    bit: int | None
    """The first significant bit that differs, counted from 1; None where none was found."""
    formats: Mapping[str, bool | None]
    """By number format: whether it keeps both as the same number; None where that is not certain.

    By the rule of `verdict`, under which tokens are stored in the format too; where it has no closed form, by
    rounding what is read.
    """

    @property
    def unseen(self) -> list[str]:
        """The formats in which both are the same number, by the names torch has for them."""
        return [TORCH_NAMES[name] for name, same in self.formats.items() if same]

    @cached_property
    def sentence(self) -> str:
        """In which bit they differ, and which formats cannot see it."""
        if self.same:
            return "D0 and D1 receive the very same numbers: no reader tells them apart."
        if self.bit is None:
            return "With all signs +, what is read of D0 and D1 shows no difference."
        seen = f"What is read of D0 and D1 differs in the {ordinal(self.bit)} bit"
        if self.unseen:
            even = "not even " if len(self.unseen) == len(self.formats) else ""
            told = "float64 can" if even else f"{listed(self.unseen)} cannot"
            return f"{seen}: {even}{told} see it."
        narrow = [self.formats[name] for name in SIGNIFICANT_BITS if name != "fp64"]
        return f"{seen}: every number format sees it." if narrow == [False] * 3 else f"{seen}."


def difference(
    construction: Construction, mechanism: Mechanism, received: tuple[Received, Received]
) -> Difference:
    """What is known without drawing anything; where nothing is proved, by what the picture computed."""
    outcome, refusal = None, ""
    try:
        outcome = strongest(
            [engine for engine in STRENGTH if not engine.draws],
            lambda engine: engine.solve(construction, mechanism),
        )
    except EngineRefusal as refused:
        refusal = str(refused)
    probes: tuple[Ends, Ends]
    try:
        outputs = proved_outputs(construction, mechanism)
        same, probes = outputs.same, (outputs.probe(0), outputs.probe(1))
    except EngineRefusal:
        d0, d1 = ((Fraction(x.probe - x.slack), Fraction(x.probe + x.slack)) for x in received)
        same, probes = False, (d0, d1)
    if outcome is not None:
        v0, v1, margin = outcome.v0, outcome.v1, outcome.margin
        size = max(abs(v0), abs(v1))
    else:
        v0, v1 = (each.probe / construction.unit for each in received)
        size = max(abs(v0), abs(v1))
        margin = float_margin(v0, v1, size)
    unit = construction.unit
    return Difference(
        outcome,
        refusal,
        same,
        significant_bits(v1, margin),
        bit_of_difference(size * unit, margin * unit) if margin else None,
        dict.fromkeys(SIGNIFICANT_BITS, True) if same else _lost(construction, mechanism, probes),
    )


def _lost(
    construction: Construction, mechanism: Mechanism, probes: tuple[Ends, Ends]
) -> Mapping[str, bool | None]:
    """In which formats the difference is lost."""
    try:
        return lost_at(construction, mechanism)
    except EngineRefusal:
        return {name: same_number(*probes, name) for name in SIGNIFICANT_BITS}


def weight_words(special: str, count: int, share: tuple[float, float], normalised: bool) -> str:
    """What attention gives the special token, or the first tokens, in D1, and in D0 if it is not the same."""
    before, after = (told_share(x) if normalised else for_people(x, 3) for x in share)
    unit = "of the weight" if normalised else "times what it carries" if count == 1 else "in all"
    what = f"{special} {'gets' if count == 1 else 'get'} {after} {unit}"
    return what if before == after else f"{what} in D1 and {before} in D0"


def told_share(x: float) -> str:
    """A share of the weight.

    >>> told_share(0.25), told_share(0.9999), told_share(1 - 2e-9), told_share(0.001), told_share(1e-18)
    ('0.25', '0.9999', 'all but 2×10⁻⁹', '1/1000', '1/10¹⁸')
    """
    if x == 1:
        return "all"
    if 0.9999 < x < 1:
        return f"all but {for_people(1 - x, 1)}"
    if 0 < x < LARGE_SHARE:
        large = whole_for_people(round(1 / x))
        return f"1/{large}" if "×" not in large else f"1/({large})"
    return "none" if x == 0 else for_people(x, 4)


def neuron_words(fired: tuple[int, int], neurons: int, close: int) -> str:
    """Who fires, and whether these signs tell D0 from D1."""
    d0, d1 = fired
    if not d0 and not d1:
        who = "no neuron fires, on D0 or on D1"
    elif not d0:
        who = f"{d1} of {neurons} neurons fire{'s' if d1 == 1 else ''} on D1, none on D0"
    elif not d1:
        who = f"{d0} of {neurons} neurons fire{'s' if d0 == 1 else ''} on D0, none on D1"
    else:
        who = f"{d1} of {neurons} neurons fire{'s' if d1 == 1 else ''} on D1, and {d0} on D0"
    told = "told apart" if not d0 and d1 else "not told apart"
    tie = f" ({close} at the threshold itself, which is not above it)" if close else ""
    return f"{who}{tie}: {told} with these signs"


def listed(names: list[str]) -> str:
    """Names with commas and an `and`.

    >>> listed(["bfloat16"]), listed(["bfloat16", "float16", "float32"])
    ('bfloat16', 'bfloat16, float16 and float32')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def ordinal(number: int) -> str:
    """A number that counts.

    >>> [ordinal(each) for each in (1, 2, 3, 8, 11, 22, 63)]
    ['1st', '2nd', '3rd', '8th', '11th', '22nd', '63rd']
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
