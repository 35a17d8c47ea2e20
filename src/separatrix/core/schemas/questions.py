"""What `verdict`, `readers`, `map`, `boundary` and `scaling` print with --json."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from separatrix.core.schemas._base import (
    Exact,
    Interval,
    Number,
    Probability,
    Texts,
    Values,
    Whole,
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
class Axis(TypedDict):
    """One axis of a map."""

    name: str
    log: bool
    values: list[Exact]


@document
class Layer(TypedDict):
    """One mechanism on a map; rows follow the second axis, columns the first."""

    mechanism: str
    engine: str
    evidence: str
    remark: str
    values: list[list[Number]]
    low: list[list[Number]] | None
    """Ends of intervals, where values are sampled."""
    high: list[list[Number]] | None


@document
class Map(TypedDict):
    """A quantity over two parameters."""

    construction: str
    parameters: Values
    taken: Values
    quantity: str
    axes: list[Axis]
    n_used: list[list[int]] | None
    """Where n was moved to admissible values: n of each cell."""
    moved: str
    difference: bool
    layers: list[Layer]


@document
class Crossing(TypedDict):
    """Where P passes the level: strictly below it at one end, strictly above it at the other."""

    lo: Exact
    hi: Exact
    certified: bool
    direction: Literal["up", "down"]
    distinguish: list[Probability]
    """P at both ends."""
    plateau: list[Exact] | None
    """The first and the last value between them at which P is the level exactly."""
    n_used: list[int | None]


Plateau = TypedDict(
    "Plateau",
    {
        "from": Exact,
        "to": Exact,
        "before": Literal["below", "above"] | None,
        "after": Literal["below", "above"] | None,
        "certified": bool,
    },
)


@document
class Analytic(TypedDict):
    """What a formula says."""

    formula: str
    tag: str
    limit: str
    """For what it is a limit."""
    values: list[float]


@document
class Boundary(TypedDict):
    """Where P(tells apart) passes a level in one parameter."""

    construction: str
    mechanism: str
    parameters: Values
    taken: Values
    parameter: str
    range: list[Exact]
    at: str
    """The level."""
    crossings: list[Crossing]
    plateaus: list[Plateau]
    """Where P is the level exactly; `before` and `after` are null at the ends of the range."""
    distinguish_at_ends: list[Probability]
    n_used_at_ends: list[int | None]
    engine: str
    evidence: str
    scanned: Whole
    """Values that were looked at first."""
    undecided: Whole
    """Of these, how many are on neither side for certain."""
    guarantee: str
    moved: str
    analytic: Analytic | None


@document
class CurvePoint(TypedDict):
    """The crossings at one value of the second parameter."""

    value: Exact
    asked: Exact
    crossings: list[Crossing]
    plateaus: list[Plateau]
    """Where P is the level exactly; `before` and `after` are null at the ends of the range."""
    distinguish_at_ends: list[Probability]
    n_used_at_ends: list[int | None]
    engine: str
    evidence: str
    guarantee: str
    moved: str
    analytic: Analytic | None


@document
class BoundaryCurve(TypedDict):
    """A boundary against a second parameter."""

    construction: str
    mechanism: str
    parameters: Values
    taken: Values
    parameter: str
    range: list[Exact]
    at: str
    over: str
    """The second parameter."""
    moved: str
    curve: list[CurvePoint]


@document
class ClosedForm(TypedDict):
    """The growth that is known beforehand."""

    formula: str
    tag: str
    limit: str
    exponent: Number


class _Growth(TypedDict):
    construction: str
    mechanism: str
    parameters: Values
    taken: Values
    parameter: str
    """The one that grows."""
    quantity: str
    exponent: Number
    interval: Interval
    interval_is: str
    power_law: bool | None
    """Null where this cannot be told."""
    reason: str
    form: str | None
    formula: str | None
    since: Number
    """From where on the form holds."""
    values: list[dict[str, int | str | Number]]
    """The parameter and the quantity by name, n_used, low and high."""
    slopes: list[dict[str, Number]]
    engine: str
    evidence: str
    remark: str
    closed_form: ClosedForm | None


@document
class Scaling(_Growth):
    """How a quantity grows with one parameter."""


@document
class GrowthRow(_Growth):
    """The growth of one of several mechanisms."""

    family: str


@document
class NoGrowth(TypedDict):
    """A mechanism without values."""

    mechanism: str
    family: str
    exponent: None
    interval: None
    power_law: None
    reason: str


@document
class Scalings(TypedDict):
    """How a quantity grows for several mechanisms."""

    construction: str
    quantity: str
    parameters: dict[str, str]
    """As they were given."""
    rows: list[GrowthRow | NoGrowth]


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
