"""The difference between D0 and D1 for one mechanism, and sentences about it for a picture.

Three things are kept apart: the result of one draw of signs, P(tells apart) over all draws, and whether a
number format can represent the difference at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from separatrix.analysis.cards.neuron_readings import ReadingPair
from separatrix.analysis.cards.outcomes import ShortVerdict
from separatrix.constructions import Construction
from separatrix.core.documents import Document, Hidden
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES, bit_of_difference
from separatrix.core.numbers.spelling import for_people, whole_for_people
from separatrix.exact.engines import STRENGTH, EngineRefusal, strongest
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.outputs._base import Ends
from separatrix.exact.outputs.attention import float_margin
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.verdicts.lost_formats import lost_at
from separatrix.exact.verdicts.rounded_outputs import same_number
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.mechanisms import Mechanism

MIN_DECIMAL_SHARE = 0.01
"""Smaller shares are written as fractions, 1/1000."""


@dataclass(frozen=True)
class Chance(ShortVerdict):
    """P(tells apart) over all signs of the reader, as `verdict` computes it without sampling."""

    said: str
    """P as text."""


@dataclass(frozen=True)
class LabelDifference(Document):
    """P(tells apart), and how much the readings of D0 and D1 differ if all signs are +."""

    chance: Chance | None
    """None if P can only be estimated by sampling, which the command `verdict` does."""
    no_chance: str
    """The reason why `chance` is None."""
    is_equal: Hidden[bool]
    """Whether D0 and D1 provably give the same output."""
    bits: float
    """The significant bits needed to tell D0 from D1; infinite where float64 shows no difference."""
    bit: int | None
    """The first significant bit that differs, counted from 1; None where none was found."""
    formats: Mapping[str, bool | None]
    """For each number format, whether both readings are the same number in it; None if that is not certain.

    As in `verdict`, the tokens are stored in the format, too. Without a closed form for that, only the
    readings are rounded.
    """

    @property
    def sentence(self) -> str:
        """The bit that differs, and the formats that cannot represent it."""
        if self.is_equal:
            return "D0 and D1 give exactly the same output: no reader tells them apart."
        if self.bit is None:
            return "With all signs +, the readings of D0 and D1 show no difference."
        differs = f"The readings of D0 and D1 differ in the {ordinal(self.bit)} bit"
        blind = [TORCH_NAMES[name] for name, is_same in self.formats.items() if is_same]
        if len(blind) == len(self.formats):
            return f"{differs}: not even float64 can see it."
        if blind:
            return f"{differs}: {join_names(blind)} cannot see it."
        # None means unknown: then nothing is said about formats. fp64 may be unknown, since the readings can
        # be float64 themselves; a difference before its last bit is not lost in it.
        unknown = [name for name, is_same in self.formats.items() if is_same is None and name != "fp64"]
        is_seen = self.bit < SIGNIFICANT_BITS["fp64"] and not unknown
        return f"{differs}: every number format sees it." if is_seen else f"{differs}."


def measure_difference(construction: Construction, mechanism: Mechanism, readings: ReadingPair) -> LabelDifference:
    """Compute the difference without sampling; without a proof, from the float readings of the picture."""
    outcome, refusal = None, ""
    try:
        exact_engines = [engine for engine in STRENGTH if not engine.draws]
        outcome = strongest(exact_engines, lambda engine: engine.solve(construction, mechanism))
    except EngineRefusal as error:
        refusal = str(error)
    probes: tuple[Ends, Ends]
    try:
        outputs = proved_outputs(construction, mechanism)
        is_equal, probes = outputs.has_equal_rows, (outputs.probe(0), outputs.probe(1))
    except EngineRefusal:
        d0, d1 = ((Fraction(x.probe - x.slack), Fraction(x.probe + x.slack)) for x in readings)
        is_equal, probes = False, (d0, d1)
    unit = construction.unit
    if outcome is not None:
        v0, v1, margin = outcome.v0, outcome.v1, outcome.margin
    else:
        v0, v1 = (reading.probe / unit for reading in readings)
        margin = float_margin(v0, v1, max(abs(v0), abs(v1)))
    # Bits are counted from the first 1 bit of the larger reading.
    size = max(abs(v0), abs(v1))
    chance = None if outcome is None else Chance.of(outcome, construction.m, chance_of(outcome))
    bits = significant_bits(v1, margin), bit_of_difference(size * unit, margin * unit) if margin else None
    formats = dict.fromkeys(SIGNIFICANT_BITS, True) if is_equal else _equal_in(construction, mechanism, probes)
    return LabelDifference(chance, refusal, is_equal, *bits, formats)


def _equal_in(construction: Construction, mechanism: Mechanism, probes: tuple[Ends, Ends]) -> Mapping[str, bool | None]:
    """Return for each number format whether D0 and D1 are the same number in it."""
    try:
        return lost_at(construction, mechanism)
    except EngineRefusal:
        return {name: same_number(*probes, name) for name in SIGNIFICANT_BITS}


def describe_weight(special: str, count: int, shares: tuple[float, float], is_normalised: bool) -> str:
    """Describe the weight of the special token, or of the first tokens, in D1, and in D0 if it differs."""
    d0, d1 = (format_share(share) if is_normalised else for_people(share, 3) for share in shares)
    unit = "of the weight" if is_normalised else "times its value" if count == 1 else "in all"
    weight = f"{special} {'gets' if count == 1 else 'get'} {d1} {unit}"
    return weight if d0 == d1 else f"{weight} in D1 and {d0} in D0"


def format_share(share: float) -> str:
    """Format a share of the weight.

    >>> [format_share(share) for share in (0.25, 0.9999, 1 - 2e-9, 0.001, 1e-18)]
    ['0.25', '0.9999', 'all but 2×10⁻⁹', '1/1000', '1/10¹⁸']
    """
    if share in (0, 1):
        return "all" if share else "none"
    if 0.9999 < share < 1:
        return f"all but {for_people(1 - share, 1)}"
    if 0 < share < MIN_DECIMAL_SHARE:
        denominator = whole_for_people(round(1 / share))
        return f"1/({denominator})" if "×" in denominator else f"1/{denominator}"
    return for_people(share, 4)


def describe_neurons(fire_counts: tuple[int, int], neurons: int, ties: int) -> str:
    """Describe which neurons fire. These signs tell D0 from D1 if some fire on D1 and none on D0."""
    d0, d1 = fire_counts
    if not d0 and not d1:
        text = "no neuron fires, on D0 or on D1"
    else:
        count, label = (d1, 1) if d1 else (d0, 0)
        text = f"{count} of {neurons} neurons fire{'s' if count == 1 else ''} on D{label}"
        text += f", and {d0} on D0" if d0 and d1 else f", none on D{1 - label}"
    tie = f" ({ties} exactly at the threshold, which does not count as firing)" if ties else ""
    return f"{text}{tie}: {'' if d1 and not d0 else 'not '}told apart with these signs"


def join_names(names: Sequence[str]) -> str:
    """Join names with commas and an `and`.

    >>> join_names(["bfloat16"]), join_names(["bfloat16", "float16", "float32"])
    ('bfloat16', 'bfloat16, float16 and float32')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def ordinal(number: int) -> str:
    """Format a number as an ordinal.

    >>> [ordinal(number) for number in (1, 2, 3, 8, 11, 22, 63)]
    ['1st', '2nd', '3rd', '8th', '11th', '22nd', '63rd']
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
