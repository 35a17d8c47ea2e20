"""What `assess`, `atlas`, `bench` and `search` print with --json."""

from __future__ import annotations

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Interval, Number, Texts, Values, Whole, Word, document


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
class Token(TypedDict):
    """A kind of token; numbers are exact."""

    key: Texts
    value: Texts
    count: int


@document
class Label(TypedDict):
    """One side of an instance."""

    queries: list[Texts]
    tokens: list[Token]


@document
class Instance(TypedDict):
    """Two labels to tell apart."""

    d0: Label
    d1: Label


@document
class Reading(TypedDict):
    """What a mechanism returns for both labels."""

    d0: list[Texts]
    d1: list[Texts]
    margin: str
    evidence: str


@document
class InputFinding(TypedDict):
    """Inputs on which one mechanism tells labels apart and the other does not."""

    kind: str
    family: str
    sentence: str
    way: str
    shrunk: bool
    instance: Instance
    x: Reading
    y: Reading


@document
class PointAnswer(TypedDict):
    """A verdict in short."""

    verdict: Word
    distinguish: Number
    interval: Interval
    margin: Number
    engine: str
    evidence: str


@document
class PointFinding(TypedDict):
    """A point of a construction on which one mechanism tells labels apart and the other does not."""

    kind: str
    family: str
    sentence: str
    shrunk: bool
    construction: str
    parameters: Values
    x: PointAnswer
    y: PointAnswer


@document
class Search(TypedDict):
    """What a search found."""

    x: str
    """The mechanism that tells."""
    y: str
    """The one that does not."""
    space: str
    seed: int
    budget: Whole
    trials: Whole
    failed: Whole
    reason: str | None
    interrupted: bool
    out_of_time: bool
    damaged: list[int]
    """Lines of the study that cannot be read."""
    found: bool
    thresholds: str
    findings: list[InputFinding | PointFinding]
    unanswered: Texts
    caution: str


@document
class CheckedInput(InputFinding):
    """A finding that was computed again."""

    holds: bool


@document
class CheckedPoint(PointFinding):
    """A finding that was computed again."""

    holds: bool


@document
class SearchCheck(TypedDict):
    """Findings of a file, computed again."""

    file: str
    x: str
    y: str
    holds: bool
    findings: list[CheckedInput | CheckedPoint]
