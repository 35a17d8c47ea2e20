"""What `assess`, `atlas`, `bench` and `search` print with --json."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Interval, Number, Texts, Values, Word, document


@document
class Cost(TypedDict):
    """What a mechanism costs on this machine, at each length."""

    mechanism: str
    width: int
    lengths: list[int]
    seconds: list[float]
    peak_bytes: list[int]
    flops: list[int]
    state_bytes: list[int]
    """What must be kept after so many tokens to decode the next one."""
    state_is: str
    """What `state_bytes` counts: a state of fixed size, or a cache of keys and values."""
    faster_than_softmax_from: int | None


@document
class NotTimed(TypedDict):
    """A mechanism that was not timed."""

    mechanism: str
    disagreement: str
    """Why."""
    faster_than_softmax_from: None


@document
class Contract(TypedDict):
    """What a mechanism keeps of the contract, check by check."""

    passed: Texts
    failed: dict[str, str]
    skipped: dict[str, str]
    not_tried: dict[str, str]
    magnifies_rounding: float


@document
class Standing(TypedDict):
    """A mechanism on one construction, at its reference point."""

    construction: str
    parameters: Values
    engine: str
    evidence: str
    verdict: Word
    distinguish: Number
    interval: Interval
    margin: Number
    bits: Number
    kind: str
    """Of evidence."""
    margin_exponent: Number
    margin_exponent_interval: Interval | None
    margin_is_power: bool | None
    margin_law: str
    margin_lengths: list[int]
    blind_from_n: int | None
    blind_from_n_is: Literal["exact", "sampled"]
    blind_searched_to: int | None


@document
class Unanswered(TypedDict):
    """A construction without an answer."""

    verdict: Literal["none"]
    evidence: str


@document
class Likeness(TypedDict):
    """A known mechanism, and how far it is: 0 is the same, 2 the opposite."""

    mechanism: str
    distance: Number


@document
class LogitScale(TypedDict):
    """A scale of logits that is hidden in a mechanism."""

    factor: float
    """At `width`."""
    width: int
    by_width: bool
    """Whether the factor depends on the width."""
    undone_by: str | None
    """What --scale undoes it; null where none does at every width."""


@document
class Calling(TypedDict):
    """How a mechanism is called."""

    logit_scale: LogitScale | None
    logit_scale_known: bool
    """Whether the scale could be measured, or does not matter."""
    verdicts_with_scale_sqrt: dict[str, str] | None
    """The verdicts that change with --scale sqrt, where the scale could not be measured."""
    notes: Texts


@document
class Card(TypedDict):
    """The report card of a mechanism."""

    mechanism: str
    contract: Contract
    constructions: dict[str, Standing | Unanswered]
    nearest: list[Likeness]
    cost: Cost | NotTimed
    against: list[Card]
    calling: Calling
    reading: str
    """The card in a paragraph."""
    finished: bool
    """Whether it was not interrupted: all that was asked for is in it."""


@document
class AtlasVerdict(TypedDict):
    """A mechanism on a construction, at the reference point alone; null where there is no answer."""

    family: str
    mechanism: str
    construction: str
    verdict: Literal["distinguishes", "blind", "saturated", "partial", "undecided", "none"]
    distinguish: Number
    low: Number
    high: Number
    kind: str | None
    engine: str | None
    evidence: str
    margin: Number
    bits: Number
    """Needed to tell the labels apart."""


@document
class AtlasCell(AtlasVerdict):
    """A mechanism on a construction; null where there is no answer."""

    margin_exponent: Number
    blind_from_n: int | None
    blind_searched_to: int | None
    rescued_by: Literal["another threshold", "a linear reader", "no reader"] | None


@document
class Elsewhere(TypedDict):
    """What is known of a mechanism on a construction at another length than the one asked."""

    word: str
    kind: str
    n: int | None
    evidence: str


@document
class Sight(TypedDict):
    """What is known of one mechanism on one construction or task."""

    word: Literal[
        "distinguishes",
        "blind",
        "saturated",
        "partial",
        "undecided",
        "lost",
        "cannot",
        "not known",
        "can",
        "learned",
        "not learned",
        "contradiction",
    ]
    """That of the verdict; `lost` where it would be seen, but is one number of the format in D0 and D1."""
    kind: str
    """How it is known."""
    n: int | None
    """The length that was asked, the nearest that there is."""
    evidence: str
    command: str
    """What shows it."""
    distinguish: Number
    """P(tells apart), before anything is rounded."""
    interval: Interval | None
    same_in_format: bool | None
    """Whether what is read is the same number of the format in D0 and D1; null where that is not known."""
    score: Number
    """On a task, what written weights score on test samples; null without any."""
    best_score: Number
    """On a task, what the best rule scores on the same samples."""
    elsewhere: Elsewhere | None
    """What is known at another length, where there is none near n. It does not count."""


@document
class ChoiceRow(TypedDict):
    """What comes of one mechanism."""

    mechanism: str
    family: str
    status: Literal["fits", "not known", "excluded"]
    excluded_by: Texts
    not_known: Texts
    """What it must see and of which nothing is known."""
    kept_bytes: int | None
    """What all layers keep of one sequence to decode the next token: the bytes of their caches."""
    kept_is: str
    """A state of fixed size, or a cache of keys and values."""
    operations_exponent: Number
    """Of a causal pass over n tokens; without causal where there is no causal form, as the note says."""
    operations_counted_at: list[int]
    note: str
    sees: dict[str, Sight]


@document
class Choice(TypedDict):
    """Which mechanisms still see what, at a length in a number format."""

    n: int
    dtype: str
    memory: int | None
    """Bytes for what is kept of one sequence, by all layers; null for any number."""
    layers: int
    heads: int
    kv_heads: int | None
    """Those whose keys and values are kept; null for all."""
    width: int
    must: Texts
    """What has to be seen."""
    asked_at: dict[str, int | None]
    not_asked: dict[str, str]
    scope: str
    mechanisms: list[ChoiceRow]
