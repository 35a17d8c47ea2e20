"""What `claim`, `reproduce` and `learn` print with --json, and `ledger.json` holds."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from separatrix.core.schemas._base import Interval, Number, Texts, Values, Whole, document


@document
class Share(TypedDict):
    """How many of some runs."""

    count: Whole
    of: Whole
    interval: Interval


@document
class Trained(TypedDict):
    """Scores of trained models; mean and median are null where every run failed."""

    mean: Number
    median: Number
    interval: Interval | None
    """Covers the median over seeds with 95 %; null for fewer than six seeds."""
    seeds: list[Number]


class _MechanismEvidence(TypedDict):
    mechanism: str
    witness: Number
    """The score of weights that are written down."""
    tuned_witness: Number
    """After training from there."""
    tuned_seeds: list[Number]
    proved_ceiling: Number
    proved_for: str | None
    """The class of models it is proved for."""
    trained: Trained
    further_lengths: dict[str, Trained]
    """Scores on samples of other lengths than those trained on."""
    solved: Share
    lr: str
    """The learning rate that was chosen."""
    lr_window: Texts
    """Those that were as good."""
    pilots: dict[str, Number]
    """The score at each learning rate tried."""
    state_bytes: int | None
    parameters: int | None
    """Of the model, how many."""
    steps_to_solve: list[int | None]
    diverged: Whole
    failed: Texts
    """Why runs failed."""
    setting: dict[str, Any]
    word: str
    sentence: str


@document
class MechanismEvidence(_MechanismEvidence):
    """What is known of one mechanism on a task."""


@document
class EqualStateEvidence(_MechanismEvidence):
    """What is known of one mechanism with about as much state as the reference."""

    key_width: int
    state_ratio: Number


@document
class Paired(TypedDict):
    """One mechanism against another, over the seeds both have."""

    a: str
    b: str
    difference: Number
    """Mean score of a minus that of b, over the seeds both have."""
    interval: Interval | None
    """Covers the median difference with 95 %; null for fewer than six seeds."""
    p_value: Number
    """Of the exact paired sign-flip test."""
    p_adjusted: Number
    """After Holm's correction for all pairs."""
    separated: bool
    """Whether p_adjusted is at most 0.05."""


@document
class EqualState(TypedDict):
    """Mechanisms whose widths were chosen so that they keep about as much."""

    reference: str
    tokens: int
    state_bytes: int
    mechanisms: list[EqualStateEvidence]
    paired: list[Paired]
    left_out: Texts


@document
class Learned(TypedDict):
    """What training on a task shows."""

    task: str
    parameters: Values
    setting: dict[str, Any]
    """The model and its training."""
    score: str
    """What is scored."""
    ceiling: Number
    ceiling_by: str
    floor: Number
    floor_by: str
    mechanisms: list[MechanismEvidence]
    paired: list[Paired]
    beside_floor: dict[str, str]
    equal_state: EqualState | None


@document
class Part(TypedDict):
    """Experiments that belong together."""

    name: str
    title: str
    found: list[Learned]


@document
class Pair(TypedDict):
    """What was said of a mechanism on a task, and what training reached."""

    task: str
    mechanism: str
    predicted: Number
    trained: Number


@document
class Prediction(TypedDict):
    """One quantity of the exact side, held against training."""

    name: str
    what: str
    correlation: Number
    interval: Interval | None
    pairs: list[Pair]
    misses: Texts


@document
class LearnedReport(TypedDict):
    """Several experiments, and what was predicted of them."""

    parts: list[Part]
    predictions: list[Prediction]
    seconds: float


@document
class PublishedNumber(TypedDict):
    """A published number beside the one measured here."""

    name: str
    source: str
    states: str
    published: Number
    accuracy: Number
    ours: Number
    interval: Interval | None
    seeds: list[Number]
    verdict: str
    why: str
    differs_in: str | None
    command: str | None
    measured_by: str | None
    cpu_seconds: Number


@document
class Published(TypedDict):
    """Published numbers, measured again."""

    rule: str
    counts: dict[str, int]
    entries: list[PublishedNumber]
