"""What `verdict`, `readers`, `map`, `boundary` and `scaling` print with --json."""

from __future__ import annotations

from typing_extensions import TypedDict

from separatrix.core.schemas._base import (
    Interval,
    Number,
    Texts,
    Values,
    Whole,
    Word,
    document,
)


@document
class Neuron(TypedDict):
    """Probabilities of one neuron: fractions as text where they are certified, else numbers."""

    p0: str | float | None
    """It fires on D0."""
    p1: str | float | None
    """It fires on D1."""
    q: str | float | None
    """It fires on neither."""


@document
class Check(TypedDict):
    """What the checker of certificates says of a file."""

    file: str
    holds: bool
    verified: Whole
    """How many statements were verified."""
    failed: Texts
    """A line for each that was not."""
    statement: Texts
    """What was verified, in sentences."""


@document
class TokenRow(TypedDict):
    """Equal tokens that follow each other, or tokens that are left out."""

    tokens: str
    """Which, for people."""
    first: int
    """Counted from 1."""
    last: int
    count: int
    cells: list[Number]
    """A number for each column, null where columns are left out; none where the tokens are left out."""
    changed: list[bool]
    """Which of them is another number in the other dataset."""


@document
class Chance(TypedDict):
    """P(tells apart) over all signs of the reader, as `verdict` gives it; nothing was drawn for it."""

    verdict: Word
    distinguish: Number
    interval: Interval
    engine: str
    evidence: str
    said: str
    """P for people."""


@document
class PicturedMechanism(TypedDict):
    """One mechanism with one draw of the reader's signs; of two lists the first is D0's, the second D1's."""

    mechanism: str
    normalised: bool
    """Whether weights add up to 1."""
    weights: list[list[list[Number]]]
    """For D0 and D1, for a query of each kind: what it gives each row of tokens; null if there are none."""
    readings: list[list[Number]]
    """What each neuron reads, the largest over the queries."""
    fires: list[list[bool]]
    """Which of them pass the threshold."""
    tells_apart: bool
    """Whether these signs tell D0 from D1: silent on D0, not on D1."""
    sentence: str
    chance: Chance | None
    """Null where P takes draws; `verdict` has it."""
    no_chance: str
    """Why it is null."""
    bits: Number
    """Significant bits that it takes to tell D0 from D1; null where no difference was found."""
    bit: int | None
    """The first significant bit that differs, counted from 1."""
    formats: dict[str, bool | None]
    """By number format: whether it keeps D0 and D1 as the same number; null where that is not certain."""


@document
class RefusedPicture(TypedDict):
    """A mechanism without a picture here."""

    mechanism: str
    reason: str


@document
class Illustration(TypedDict):
    """A construction as one looks at it: D0 beside D1, what attention gives tokens, which neurons fire."""

    construction: str
    title: str
    special: str
    """What the first token is called; empty where it has no name."""
    parameters: Values
    taken: Values
    moved: str
    """A sentence on n, where it was moved to an admissible one."""
    n: str
    """With every digit, as one types it."""
    theorem: str
    """Whether the separation theorem covers this point; empty where it has no say."""
    seed: Whole
    """Of the reader's signs."""
    columns: Texts
    logit_unit: str
    unit: str
    threshold: Number
    difference: str
    """In what D0 and D1 differ, in words."""
    queries: Texts
    """The kinds of query, by the tokens that ask; empty where no token does."""
    tokens: list[list[TokenRow]]
    """Of D0 and of D1."""
    mechanisms: list[PicturedMechanism]
    refused: list[RefusedPicture]
