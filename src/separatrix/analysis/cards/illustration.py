"""Pictures of a construction at any point: tokens, attention weights, and the neurons of the reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from separatrix.analysis.cards.label_difference import (
    LabelDifference,
    describe_neurons,
    describe_weight,
    measure_difference,
)
from separatrix.analysis.cards.neuron_readings import NeuronReadings, SignDraw, find_query_kinds, read_neurons
from separatrix.analysis.cards.token_rows import (
    LABELS,
    TokenLayout,
    TokenRow,
    TokenTable,
    build_token_table,
    lay_out_all_tokens,
    lay_out_tokens,
    row_shares,
)
from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import admissible
from separatrix.constructions.reference import read_with_defaults, reference_defaults
from separatrix.core.documents import Document, Hidden, Inlined, shown
from separatrix.core.errors import EngineRefusal, SeparatrixError, UsageError, describe_failure
from separatrix.core.numbers import parse_integer
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.theorem import describe_coverage
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.mechanisms.load import mechanisms_from

MECHANISMS = ("softmax", "linear")
UNNORMALISED = "identity-features:normalised=no"
"""Added to the picture where neither of the two tells D0 from D1."""
NAMES = {"softmax": "softmax", "linear": "linear attention", UNNORMALISED: "unnormalised linear attention"}
"""The names of mechanisms in sentences."""
SEED = 0
"""The default seed of the reader's signs."""
MAX_SEED = 2**63 - 1
MAX_PICTURE_MECHANISMS = 8
Inputs = Mapping[str, object]
Weights = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MechanismPicture(Document):
    """One mechanism with one draw of the reader's signs; of two values the first is for D0."""

    mechanism: str
    normalised: bool
    """Whether the weights add up to 1."""
    weights: tuple[Weights, Weights]
    """For a query of each kind, the weight of the tokens of each row together.

    NaN for a mechanism that is not linear in the values, and so has no weights."""
    readings: tuple[tuple[float, ...], tuple[float, ...]]
    """The reading of each neuron, the largest over the queries."""
    threshold: Hidden[float]
    weight_text: Hidden[str]
    """The weight of the special token as the beginning of a sentence."""
    difference: Inlined[LabelDifference]

    @shown
    def fires(self) -> Sequence[Sequence[bool]]:
        """The neurons whose reading exceeds the threshold."""
        return [[reading > self.threshold for reading in readings] for readings in self.readings]

    @property
    def fire_counts(self) -> tuple[int, int]:
        """The number of neurons that fire on D0 and on D1."""
        return sum(self.fires[0]), sum(self.fires[1])

    @shown
    def tells_apart(self) -> bool:
        """Whether this reader, with these signs, is silent on D0 and fires on D1."""
        return self.fire_counts[0] == 0 and self.fire_counts[1] > 0

    @shown
    def sentence(self) -> str:
        """The weight of the special token, the neurons that fire, and the formats that see the difference.

        The weight is the largest that any of the shown queries gives.

        >>> illustrate_at("spike", "linear", {"n": 10**6})["linear"].sentence
        'linear: the spike gets 1/200001 of the weight in D1 and 1/967742 in D0; no neuron fires, on D0 or \
on D1: not told apart with these signs. The readings of D0 and D1 differ in the 17th bit: bfloat16 and \
float16 cannot see it.'
        """
        ties = sum(reading == self.threshold for readings in self.readings for reading in readings)
        neurons = describe_neurons(self.fire_counts, len(self.readings[0]), ties)
        return f"{self.mechanism}: {self.weight_text}{neurons}. {self.difference.sentence}".rstrip()


@dataclass(frozen=True)
class RefusedPicture(Document):
    """A mechanism that has no picture at this point."""

    mechanism: str
    reason: str


@dataclass(frozen=True)
class Illustration(Document):
    """D0 beside D1, the attention that each token gets, and the neurons that exceed the threshold."""

    construction: str
    title: str
    special: str
    """The name of the first token; empty where it has none."""
    parameters: Mapping[str, int | str]
    taken: Mapping[str, int | str]
    """The parameters that were not given, and taken from the reference point."""
    moved: str
    """A sentence on n, if it was moved to the nearest admissible one."""
    theorem: str
    """Whether the separation theorem covers this point; empty where it does not apply."""
    seed: int
    """The seed of the reader's signs."""
    columns: tuple[str, ...]
    """`logit`, unless keys are made of the values; features of the values; `⋯` for those left out."""
    logit_unit: str
    """Empty for plain numbers, as is `unit`."""
    unit: str
    """The unit of the values, the readings and the threshold."""
    threshold: float
    queries: tuple[str, ...]
    """The kinds of query whose weights are shown, by the positions of their tokens; empty where no token is
    one."""
    tokens: tuple[tuple[TokenRow, ...], tuple[TokenRow, ...]]
    """The rows of D0 and of D1."""
    mechanisms: tuple[MechanismPicture, ...]
    refused: tuple[RefusedPicture, ...]
    differences: Hidden[int]
    """The count of numbers that differ, shown or not; 0 where D0 and D1 have different numbers of tokens."""

    def __getitem__(self, mechanism: str) -> MechanismPicture:
        return next(picture for picture in self.mechanisms if picture.mechanism == mechanism)

    @shown
    def n(self) -> str:
        """The number of tokens with every digit, as it is typed."""
        return str(self.parameters["n"])

    @shown
    def difference(self) -> str:
        """The difference between D0 and D1 in words."""
        if not self.differences:
            return "counts of tokens differ"
        return "one number differs" if self.differences == 1 else f"{self.differences:,} numbers differ"

    @property
    def finding(self) -> str:
        """The mechanisms that tell D0 from D1 with these signs, as a sentence."""
        names: dict[bool, list[str]] = {True: [], False: []}
        for picture in self.mechanisms:
            names[picture.tells_apart].append(NAMES.get(picture.mechanism, picture.mechanism))
        winners, losers = names[True], names[False]
        loser_names = f"neither {' nor '.join(losers)}" if len(losers) > 1 else "".join(losers)
        if not winners:
            text = f"{loser_names} tells D0 from D1."
        else:
            text = f"{' and '.join(winners)} {'tells' if len(winners) == 1 else 'tell'} D0 from D1"
            text += f", {loser_names} {'does' if len(losers) > 1 else 'does not'}." if losers else "."
        return f"{text[0].upper()}{text[1:]}"


def illustrate(name: str) -> Illustration:
    """Return the picture of a construction at its reference point, with one draw of the reader's signs.

    The special token comes first. Softmax and linear attention are shown, and unnormalised linear attention
    where neither of them tells D0 from D1.

    >>> spike = illustrate("spike")
    >>> spike.tokens[1][0].cells[0], spike.differences
    (1.2, 1)
    >>> [(picture.mechanism, picture.fire_counts) for picture in spike.mechanisms]
    [('softmax', (0, 4)), ('linear', (0, 0))]
    """
    kind = construction_named(name)
    construction = kind.read(kind.example)
    picture = _draw(construction, map(mechanism_named, MECHANISMS))
    if any(part.tells_apart for part in picture.mechanisms):
        return picture
    return _draw(construction, map(mechanism_named, (*MECHANISMS, UNNORMALISED)))


def illustrate_at(construction: str, mechanisms: Any, parameters: Inputs, *, seed: int = SEED) -> Illustration:
    """Return the picture at any point and for any mechanisms, with the signs that belong to `seed`.

    Runs of equal tokens are computed once, so n may be as large as one likes. Where there are no groups, or a
    mechanism takes no counts, every token is laid out, up to 2,000. Missing parameters are taken from the
    reference point, and n is moved to the nearest admissible one. Mechanisms without a picture are listed in
    `refused`; if none has one, EngineRefusal is raised.

    >>> spike = illustrate_at("spike", "softmax,linear", {"n": "1e18"}, seed=3)
    >>> [row.tokens for row in spike.tokens[1]][:3], spike["linear"].difference.bit
    (['1', '2–10¹⁶', '10¹⁶–2×10¹⁶'], 56)
    """
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"seed={seed} is out of range; it must be 0 to {MAX_SEED}")
    kind, selection = construction_named(construction), mechanisms_from(mechanisms)
    if len(selection) > MAX_PICTURE_MECHANISMS:
        raise UsageError(f"{len(selection)} mechanisms are more than a picture has room for, {MAX_PICTURE_MECHANISMS}")
    values = admissible(kind, {**reference_defaults(kind, parameters), **parameters})
    point, missing = read_with_defaults(kind, {name: values[name] for name in parameters})
    n = parse_integer(parameters.get("n", point.n), "n")
    length_remark = "" if n == point.n else f"n={n} is rounded to a multiple of {kind.step_name}: n={point.n}."
    picture = replace(_draw(point, selection, seed), taken=missing, moved=length_remark)
    if not picture.mechanisms:
        raise EngineRefusal("; ".join(refusal.reason for refusal in picture.refused))
    return picture


def _draw(construction: Construction, mechanisms: Iterable[Mechanism], seed: int = SEED) -> Illustration:
    signs, layouts = SignDraw(construction, seed), lay_out_tokens(construction)
    table, kinds = build_token_table(construction, layouts), find_query_kinds(layouts)
    threshold = construction.threshold / construction.unit
    pictures: dict[str, tuple[Mechanism, MechanismPicture]] = {}
    refusals: dict[str, RefusedPicture] = {}
    for mechanism in mechanisms:
        name = mechanism.spelled
        try:
            needs_all = layouts[0].tokens.counts is not None and not mechanism.takes_counts
            own_layouts = lay_out_all_tokens(construction, name) if needs_all else layouts
            readings = read_neurons(mechanism, own_layouts, signs)
            difference = measure_difference(construction, mechanism, readings)
        except SeparatrixError as error:
            refusals[name] = RefusedPicture(name, error.reason if isinstance(error, EngineRefusal) else str(error))
            continue
        except Exception as error:  # a user's mechanism may raise anything
            refusals[name] = RefusedPicture(name, f"{name} {describe_failure(error)}")
            continue
        d0, d1 = (_row_weights(table.rows[label], own_layouts[label], readings[label], len(kinds)) for label in LABELS)
        values, is_normalised = (readings[0].readings, readings[1].readings), mechanism.is_normalised
        text = _describe_special_weight(construction, table, (d0, d1), is_normalised)
        picture = MechanismPicture(name, is_normalised, (d0, d1), values, threshold, text, difference)
        pictures[name] = mechanism, picture
    return Illustration(
        construction=construction.name,
        title=construction.title,
        special=construction.special,
        parameters=construction.parameters.as_json(),
        taken={},
        moved="",
        theorem=describe_coverage(construction, (mechanism for mechanism, _ in pictures.values()), DELTA),
        seed=seed,
        unit="" if construction.unit == 1 else "√(log n)",
        threshold=threshold,
        queries=tuple(kind.positions for kind in kinds),
        tokens=table.rows,
        mechanisms=tuple(picture for _, picture in pictures.values()),
        refused=tuple(refusals.values()),
        **{name: getattr(table, name) for name in ("columns", "logit_unit", "differences")},
    )


def _row_weights(rows: tuple[TokenRow, ...], layout: TokenLayout, readings: NeuronReadings, kinds: int) -> Weights:
    """Return the weights that a query of each kind gives to each row."""
    if readings.weights is None:
        return ((math.nan,) * len(rows),) * kinds
    return tuple(map(tuple, (readings.weights @ row_shares(rows, layout).T).tolist()))


def _describe_special_weight(
    construction: Construction, table: TokenTable, weights: tuple[Weights, Weights], is_normalised: bool
) -> str:
    """Return the first half of the sentence on a mechanism; empty if it has no weights."""
    d0, d1 = (max(row_weights[0] for row_weights in label_weights) for label_weights in weights)
    if math.isnan(d1):
        return ""
    first = table.rows[1][0]
    special = construction.special or ("tokens " if first.count > 1 else "token ") + first.tokens
    return f"{describe_weight(special, first.count, (d0, d1), is_normalised)}; "
