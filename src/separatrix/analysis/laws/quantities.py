"""Quantities that may grow (margin, bits, 1-P, critical n), each read at one point, with its accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from separatrix.analysis.laws.margins import EVIDENCE, POSITIONS, is_literal, margin
from separatrix.analysis.maps.boundary import search_span
from separatrix.analysis.maps.boundary_search import BoundarySettings, find_boundary
from separatrix.constructions import Construction
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.formats import SIGNIFICANT_BITS
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.ranges import Number, is_axis
from separatrix.exact.engines import ENGINES, EngineRefusal, Sampling, solve
from separatrix.exact.outputs.tokens import place_matters
from separatrix.exact.verdicts import lost_from
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms.custom import CustomMechanism

CRITICAL_N_RANGE = "3:1e18"
"""The n among which a critical one is searched by default."""
MAX_LITERAL_TOKENS = 5000
"""The most tokens that are attended one by one, unless the dense engine is asked for."""
COSTS = ("seconds", "peak_bytes", "flops", "state_bytes")
"""Quantities that are measured by running the mechanism."""
ANY_N = 10**6
"""For a quantity that tries every n by itself."""
COARSE_STEP = 1e-4
"""If neighbouring n differ by more than this share, a critical n is known to an interval only."""


class Noise(Enum):
    """The scatter of the values of a quantity."""

    NONE = "none"
    INTERVAL = "each value comes with an interval"
    PERHAPS = "random parts change with the length and may make them scatter"
    SCATTER = "of unknown size"


class NoValue(EngineRefusal):
    """A quantity has no positive value, so its logarithm does not exist."""


@dataclass(frozen=True)
class Value:
    """A quantity at one x."""

    x: Number
    y: float
    engine: str
    evidence: str
    noise: Noise = Noise.NONE
    low: float = math.nan
    high: float = math.nan
    """The interval, if there is one."""
    accuracy: float = 1e-12
    """The rounding error of y, relative to itself."""
    n: int | None = None
    """The number of tokens, if the value is for one number of tokens."""

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or y twice if there is none."""
        return (self.low, self.high) if self.noise is Noise.INTERVAL else (self.y, self.y)


@dataclass(frozen=True)
class ReadOptions:
    """The options that all readings of a quantity share."""

    name: str
    """The parameter that grows."""
    engine: str
    sampling: Sampling
    n: str = CRITICAL_N_RANGE


Read = Callable[[Question, Number, ReadOptions], Value]


def read_margin(of: str, question: Question, at: Number, options: ReadOptions) -> Value:
    """Read the margin v(D1) - v(D0) with all signs +, or the bits log2(|v1| / |margin|)."""
    point, mechanism = question.point({options.name: at}), question.mechanism({options.name: at})
    if is_literal(point, mechanism) and options.engine == "auto" and point.n > MAX_LITERAL_TOKENS:
        reason = f"{mechanism.spelled} needs every token, and n={point.n:,} is more than {MAX_LITERAL_TOKENS:,}"
        raise EngineRefusal(reason, ("dense",))
    result = margin(point, mechanism, options.engine)
    x = _used_value(options.name, at, point)
    place = f"{options.name}={format_exact(x)}"
    if result.is_lost:
        raise EngineRefusal(f"margin is {result.value:.3g} at {place}, lost in float64's rounding: no exponent")
    if result.value <= 0:
        raise _no_exponent("margin", result.value, place)
    is_least = ENGINES[result.engine].draws and place_matters(point, mechanism)
    evidence = f"{EVIDENCE[result.engine]}{f', {POSITIONS}' if is_least else ''}"
    # Seeded parts are drawn anew at every length, so that exact margins may still scatter; only the weights of
    # a user's own class stay the same.
    is_redrawn = not isinstance(mechanism, CustomMechanism) and not mechanism.permutation_equivariant
    has_seed = "seed" in point.schema.model_fields or (is_redrawn and "seed" in mechanism.schema.model_fields)
    noise = Noise.PERHAPS if has_seed else Noise.NONE
    accuracy = result.accuracy if of == "margin" else result.accuracy / max(abs(result.bits), 1e-9)
    y = result.value if of == "margin" else result.bits
    return Value(x, y, result.engine, evidence, noise, accuracy=accuracy, n=point.n)


def read_miss(question: Question, at: Number, options: ReadOptions) -> Value:
    """Read 1 - P(tells apart) = 1 - (1-p0)^m + q^m, in a form without cancellation."""
    point, mechanism = question.point({options.name: at}), question.mechanism({options.name: at})
    outcome = solve(point, mechanism, options.engine, options.sampling)
    x, (low, high) = _used_value(options.name, at, point), outcome.interval
    if low < high:
        y, ends = 1 - outcome.distinguish, (1 - high, 1 - low)
        return Value(x, y, outcome.engine, outcome.evidence, Noise.INTERVAL, *ends, n=point.n)
    # expm1 and log1p keep the digits of a miss far below 1e-16, which 1 - P would lose.
    fires, silent = float(outcome.p0), float(1 - outcome.p0 - outcome.only)
    fires_on_d0 = 1.0 if fires >= 1 else -math.expm1(point.m * math.log1p(-fires))
    return Value(x, fires_on_d0 + max(silent, 0.0) ** point.m, outcome.engine, outcome.evidence, n=point.n)


def read_critical_n(question: Question, at: Number, options: ReadOptions) -> Value:
    """Read the n at which P(tells apart) passes 1/2; the last one if there are several."""
    at_value = question.with_parameter(options.name, at)
    settings = BoundarySettings(engine=options.engine, sampling=options.sampling)
    boundary = find_boundary(at_value, search_span(at_value, "n", options.n), settings)
    if not boundary.crossings:
        start, stop = boundary.ends
        raise NoValue(
            f"P is {start.p:.3g} at n={format_exact(start.value)} and {stop.p:.3g} at "
            f"n={format_exact(stop.value)} and does not pass 1/2 between them at "
            f"{options.name}={format_exact(at)}: no critical n"
        )
    last = boundary.crossings[-1]
    low, high = float(last.lo.value), float(last.hi.value)
    noise = Noise.SCATTER if ENGINES[boundary.engine].draws else _step_noise(high / low - 1)
    return Value(at, high, boundary.engine, boundary.evidence, noise, low, high, high / low - 1)


def read_lost_n(number_format: str, question: Question, at: Number, options: ReadOptions) -> Value:
    """Read the n from which on both labels are the same number of a format."""
    any_length = replace(question, fixed={"n": ANY_N, **question.fixed})
    point, mechanism = any_length.point({options.name: at}), any_length.mechanism({options.name: at})
    n = lost_from(point, mechanism)[number_format]
    if n is None:
        place = f"{options.name}={format_exact(at)}"
        raise NoValue(f"none found up to n=1e40: nothing is lost in {number_format} at {place}")
    share = point.step / n
    evidence = "pre-activations in rationals and balls, rounded to the format"
    return Value(at, float(n), "certified", evidence, _step_noise(share), n - point.step, n, share)


def _step_noise(share: float) -> Noise:
    return Noise.INTERVAL if share > COARSE_STEP else Noise.NONE


QUANTITIES: dict[str, Read] = {
    "margin": partial(read_margin, "margin"),
    "bits": partial(read_margin, "bits"),
    "miss": read_miss,
    "critical_n": read_critical_n,
    **{f"lost_{name}": partial(read_lost_n, name) for name in SIGNIFICANT_BITS},
}
"""Quantities that are computed as a parameter grows."""
SAMPLED_QUANTITIES = ("miss", "critical_n")
"""Quantities for which signs are drawn if there is no closed form."""
TOKEN_QUANTITIES = tuple(name for name in QUANTITIES if name.startswith(("critical", "lost")))
"""Quantities that are themselves a number of tokens."""


def require_positive(of: str, value: Value, name: str) -> Value:
    """Return the value if it has a logarithm."""
    if not 0 < value.y < math.inf:
        raise _no_exponent(of, value.y, f"{name}={format_exact(value.x)}")
    return value


def _no_exponent(of: str, y: float, place: str) -> NoValue:
    return NoValue(f"{of} is {y:.3g} at {place}: no exponent, since only positive values follow a power law")


def _used_value(name: str, at: Number, point: Construction) -> Number:
    """Return the value that was used: for n the nearest admissible one."""
    return point.n if name == "n" else at


def split_n(of: str, parameters: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the range of n to search for a critical one, and the other parameters."""
    if of not in TOKEN_QUANTITIES or "n" not in parameters:
        return CRITICAL_N_RANGE, dict(parameters)
    n, remaining = str(parameters["n"]), {name: value for name, value in parameters.items() if name != "n"}
    if of != "critical_n":
        raise UsageError(f"{of} is itself a number of tokens; leave out n={n} and give another axis")
    if not is_axis(n) or len(n.replace(":log", "").split(":")) != 2:
        raise UsageError(f"critical_n is searched in a range of n; write n=start:stop, or leave out n={n}")
    return n, remaining
