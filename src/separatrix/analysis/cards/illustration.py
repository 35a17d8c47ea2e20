"""A construction as one looks at it, at any point: tokens, attention, the reader's neurons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from separatrix.analysis.cards.neuron_readings import (
    MOST_QUERIES,
    DrawnSigns,
    Received,
    kinds_of_query,
    read_neurons,
)
from separatrix.analysis.cards.picture_words import Difference, difference, neuron_words, weight_words
from separatrix.analysis.cards.token_rows import (
    LABELS,
    Laid,
    Row,
    all_tokens,
    is_counted,
    laid_out,
    shares,
    token_table,
)
from separatrix.constructions import Construction, Label, construction_named
from separatrix.constructions.lengths import admissible
from separatrix.constructions.reference import read_completed, reference_defaults
from separatrix.core.errors import EngineRefusal, SeparatrixError, UsageError, raised
from separatrix.core.numbers import parse_integer
from separatrix.core.numbers.json import finite
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.theorem import describe_coverage
from separatrix.exact.verdicts.verdict import chance_of
from separatrix.exact.verdicts.words import word_for
from separatrix.mechanisms import Mechanism, mechanism_named
from separatrix.mechanisms.load import mechanisms_from

if TYPE_CHECKING:
    from separatrix.core.schemas import questions as documents

MECHANISMS = ("softmax", "linear")
UNNORMALISED = "identity-features:normalised=no"
"""Shown besides where neither of the two tells D0 from D1."""
NAMES = {"softmax": "softmax", "linear": "linear attention", UNNORMALISED: "unnormalised linear attention"}
"""As sentences call them."""
SEED = 0
"""Of the reader's signs."""
LARGEST_SEED = 2**63 - 1
MOST_MECHANISMS = 8


@dataclass(frozen=True)
class Dataset:
    """D0 or D1: its tokens, and what every neuron of the reader makes of them."""

    label: Label
    rows: tuple[Row, ...]
    given: Mapping[str, tuple[tuple[float, ...], ...]]
    """By mechanism, for a query of each kind: what it gives the tokens of each row together.

    Not a number where a mechanism is not linear in what tokens carry, and so has no weights."""
    readings: Mapping[str, tuple[float, ...]]
    """By mechanism: what each neuron reads, the largest over the queries."""

    @property
    def weights(self) -> dict[str, tuple[float, ...]]:
        """What the first query gives the tokens of each row together, by mechanism."""
        return {name: kinds[0] for name, kinds in self.given.items()}


@dataclass(frozen=True)
class Illustration:
    """D0 beside D1, what attention gives each token, and which neurons pass the threshold."""

    construction: str
    title: str
    special: str
    """What the first token is called; empty where it has no name."""
    point: Mapping[str, int | str]
    columns: tuple[str, ...]
    """`logit`, unless keys are made of what tokens carry; features they carry; `⋯` for those left out."""
    logit_unit: str
    """Empty for plain numbers, as is `unit`."""
    unit: str
    """In which what is carried, the readings and the threshold are."""
    datasets: tuple[Dataset, Dataset]
    queries: tuple[str, ...]
    """The kinds of query whose weights are shown, by the tokens that ask; empty where no token does."""
    differences: int
    """In how many numbers D0 and D1 differ, shown or not; 0 where they have not as many tokens."""
    threshold: float
    normalised: Mapping[str, bool]
    """By mechanism: whether weights add up to 1."""
    known: Mapping[str, Difference]
    """By mechanism: what is known over all signs, and of number formats."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Mechanisms that have no picture here, and why."""
    taken: Mapping[str, int | str] = field(default_factory=dict)
    """Parameters that were not given, and are of the reference point."""
    moved: str = ""
    """A sentence on the n that was asked for, where it was moved to one that the construction admits."""
    seed: int = SEED
    theorem: str = ""
    """Whether the separation theorem covers this point; empty where it has no say."""

    @property
    def finding(self) -> str:
        """Who tells D0 from D1 with these signs, as a sentence."""
        told = [NAMES.get(name, name) for name in self.mechanisms if self.tells_apart(name)]
        others = [NAMES.get(name, name) for name in self.mechanisms if not self.tells_apart(name)]
        rest = f"neither {' nor '.join(others)}" if len(others) > 1 else "".join(others)
        if not told:
            said = f"{rest} tells D0 from D1."
        else:
            said = f"{' and '.join(told)} {'tells' if len(told) == 1 else 'tell'} D0 from D1"
            said += f", {rest} {'does' if len(others) > 1 else 'does not'}." if others else "."
        return f"{said[0].upper()}{said[1:]}"

    @property
    def difference(self) -> str:
        """In what D0 and D1 differ, in words."""
        if not self.differences:
            return "counts of tokens differ"
        return "one number differs" if self.differences == 1 else f"{self.differences:,} numbers differ"

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that are shown."""
        return tuple(self.datasets[0].readings)

    def fires(self, mechanism: str, label: Label) -> tuple[bool, ...]:
        """Which neurons pass the threshold."""
        return tuple(reading > self.threshold for reading in self.datasets[label].readings[mechanism])

    def fired(self, mechanism: str, label: Label) -> int:
        """How many neurons pass the threshold."""
        return sum(self.fires(mechanism, label))

    def tells_apart(self, mechanism: str) -> bool:
        """Whether this reader, with these signs, is silent on D0 and fires on D1."""
        return self.fired(mechanism, 0) == 0 and self.fired(mechanism, 1) > 0

    def sentence(self, mechanism: str) -> str:
        """What is to be seen of one mechanism: the first token's weight, who fires, what formats keep.

        The weight is the largest that a query of those shown gives it.

        >>> illustrate_at("spike", "linear", {"n": 10**6}).sentence("linear")
        'linear: the spike gets 1/200001 of the weight in D1 and 1/967742 in D0; no neuron fires, on D0 or \
on D1: not told apart with these signs. What is read of D0 and D1 differs in the 17th bit: bfloat16 and \
float16 cannot see it.'
        """
        d0, d1 = (max(kind[0] for kind in dataset.given[mechanism]) for dataset in self.datasets)
        fired = self.fired(mechanism, 0), self.fired(mechanism, 1)
        readings = [dataset.readings[mechanism] for dataset in self.datasets]
        close = sum(x == self.threshold for reading in readings for x in reading)
        first = self.datasets[1].rows[0]
        special = self.special or ("tokens " if first.count > 1 else "token ") + first.tokens
        weight = ""
        if not math.isnan(d1):
            weight = f"{weight_words(special, first.count, (d0, d1), self.normalised[mechanism])}; "
        neurons = neuron_words(fired, len(readings[0]), close)
        return f"{mechanism}: {weight}{neurons}. {self.known[mechanism].sentence}".rstrip()

    def as_json(self) -> documents.Illustration:
        """The picture as the page draws it."""
        found: documents.Illustration = finite(
            {
                "construction": self.construction,
                "title": self.title,
                "special": self.special,
                "parameters": dict(self.point),
                "taken": dict(self.taken),
                "moved": self.moved,
                "n": str(self.point["n"]),
                "theorem": self.theorem,
                "seed": self.seed,
                "columns": self.columns,
                "logit_unit": self.logit_unit,
                "unit": self.unit,
                "threshold": self.threshold,
                "difference": self.difference,
                "queries": self.queries,
                "tokens": [[_row_json(row) for row in dataset.rows] for dataset in self.datasets],
                "mechanisms": [self._mechanism_json(name) for name in self.mechanisms],
                "refused": [{"mechanism": name, "reason": why} for name, why in self.refused.items()],
            }
        )
        return found

    def _mechanism_json(self, name: str) -> dict[str, Any]:
        known = self.known[name]
        outcome, m = known.outcome, int(self.point["m"])
        return {
            "mechanism": name,
            "normalised": self.normalised[name],
            "weights": [dataset.given[name] for dataset in self.datasets],
            "readings": [dataset.readings[name] for dataset in self.datasets],
            "fires": [self.fires(name, label) for label in LABELS],
            "tells_apart": self.tells_apart(name),
            "sentence": self.sentence(name),
            "chance": None
            if outcome is None
            else {
                "verdict": word_for(outcome, m, DELTA),
                "distinguish": outcome.distinguish,
                "interval": outcome.interval,
                "engine": outcome.engine,
                "evidence": outcome.evidence,
                "said": chance_of(outcome),
            },
            "no_chance": known.no_outcome,
            "bits": known.bits,
            "bit": known.bit,
            "formats": dict(known.formats),
        }


def _row_json(row: Row) -> dict[str, Any]:
    names = ("tokens", "first", "last", "count", "cells", "changed")
    return {name: getattr(row, name) for name in names}


def illustrate(name: str) -> Illustration:
    """The picture of a construction at its reference point, with one draw of the reader's signs.

    The special token stands first. Softmax and linear attention are shown, and unnormalised linear attention
    where neither of them tells D0 from D1.

    >>> spike = illustrate("spike")
    >>> spike.datasets[1].rows[0].cells[0], spike.differences
    (1.2, 1)
    >>> [(each, spike.fired(each, 0), spike.fired(each, 1) > 0) for each in spike.mechanisms]
    [('softmax', 0, True), ('linear', 0, False)]
    """
    kind = construction_named(name)
    construction = kind.read(kind.example)
    found = _illustrate(construction, map(mechanism_named, MECHANISMS))
    if any(map(found.tells_apart, MECHANISMS)):
        return found
    return _illustrate(construction, map(mechanism_named, (*MECHANISMS, UNNORMALISED)))


def illustrate_at(
    construction: str, mechanisms: Any, parameters: Mapping[str, object], *, seed: int = SEED
) -> Illustration:
    """The picture at any point and for any mechanisms, with the draw of the reader's signs that `seed` names.

    Tokens are groups of equal ones, so n may be as large as one likes; where there are no groups, or a
    mechanism takes no counts, every token is laid out, up to 2,000. What is not given is taken from the
    reference point, and n is moved to the nearest that the construction admits. A mechanism that has no
    picture here is told in `refused`; if none has, it is an EngineRefusal.

    >>> spike = illustrate_at("spike", "softmax,linear", {"n": "1e18"}, seed=3)
    >>> [row.tokens for row in spike.datasets[1].rows][:3], spike.known["linear"].bit
    (['1', '2–10¹⁶', '10¹⁶–2×10¹⁶'], 56)
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed={seed} is out of range; it must be 0 to {LARGEST_SEED}")
    kind, chosen = construction_named(construction), mechanisms_from(mechanisms)
    if len(chosen) > MOST_MECHANISMS:
        raise UsageError(f"{len(chosen)} mechanisms are more than a picture has room for, {MOST_MECHANISMS}")
    completed = admissible(kind, {**reference_defaults(kind, parameters), **parameters})
    point, missing = read_completed(kind, {name: completed[name] for name in parameters})
    asked = parse_integer(parameters.get("n", point.n), "n")
    rounded = f"n={asked} is rounded to a multiple of {kind.step_name}: n={point.n}."
    found = _illustrate(point, chosen, seed, missing, "" if asked == point.n else rounded)
    if not found.mechanisms:
        raise EngineRefusal("; ".join(found.refused.values()))
    return found


def _illustrate(
    construction: Construction,
    mechanisms: Iterable[Mechanism],
    seed: int = SEED,
    missing: Mapping[str, int | str] | None = None,
    moved: str = "",
) -> Illustration:
    signs, laid = DrawnSigns(construction, seed), laid_out(construction)
    table, kinds = token_table(construction, laid), kinds_of_query(laid)[:MOST_QUERIES]
    shown: dict[str, Mechanism] = {}
    given: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    received: dict[str, tuple[Received, Received]] = {}
    known: dict[str, Difference] = {}
    refused: dict[str, str] = {}
    for mechanism in mechanisms:
        name = mechanism.spelled
        try:
            own = laid if is_counted(laid) <= mechanism.takes_counts else all_tokens(construction, name)
            received[name] = read_neurons(construction, mechanism, own, signs)
            known[name] = difference(construction, mechanism, received[name])
        except SeparatrixError as error:
            refused[name] = error.reason if isinstance(error, EngineRefusal) else str(error)
            continue
        except Exception as error:  # a stranger's mechanism may raise anything
            refused[name] = f"{name} {raised(error)}"
            continue
        shown[name] = mechanism
        for label in LABELS:
            given[label][name] = _given(table.rows[label], own[label], received[name][label], len(kinds))
    d0, d1 = (
        Dataset(
            label,
            table.rows[label],
            given[label],
            {name: received[name][label].readings for name in shown},
        )
        for label in LABELS
    )
    return Illustration(
        construction.name,
        construction.title,
        construction.special,
        construction.parameters.shown(),
        table.columns,
        table.logit_unit,
        "" if construction.unit == 1 else "√(log n)",
        (d0, d1),
        tuple(kind.tokens for kind in kinds),
        table.differences,
        construction.threshold / construction.unit,
        {name: mechanism.normalised for name, mechanism in shown.items()},
        known,
        refused,
        missing or {},
        moved,
        seed,
        describe_coverage(construction, shown.values(), DELTA),
    )


def _given(
    rows: tuple[Row, ...], laid: Laid, received: Received, kinds: int
) -> tuple[tuple[float, ...], ...]:
    """What a query of each kind gives each row."""
    if received.weights is None:
        return ((math.nan,) * len(rows),) * kinds
    return tuple(map(tuple, (received.weights @ shares(rows, laid).T).tolist()))
