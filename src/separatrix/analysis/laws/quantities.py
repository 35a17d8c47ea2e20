"""What may grow: margin, bits, 1-P, the critical n; each read at one point, with how well it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from separatrix.analysis.laws.margins import EVIDENCE, PLACES, Margin, is_literal, margin
from separatrix.analysis.maps.boundary import boundary_of, search_span
from separatrix.constructions import Construction
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.formats import SIGNIFICANT_BITS
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.ranges import Number, is_axis
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, solve
from separatrix.exact.outputs.tokens import place_matters
from separatrix.exact.verdicts import lost_from
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms.custom import CustomMechanism

SEARCHED = "3:1e18"
"""The n among which a critical one is looked for unless told otherwise."""
LITERAL_MOST = 5000
"""Where all tokens are needed, no more of them are taken unless the dense engine is asked for."""
COSTS = ("seconds", "peak_bytes", "flops", "state_bytes")
"""What is measured by running the mechanism."""
ANY_N = 10**6
"""For a quantity that looks at every n by itself."""


class Noise(Enum):
    """What the values of a quantity scatter by."""

    NONE = "none"
    INTERVAL = "each value comes with an interval"
    PERHAPS = "random parts change with the length and may make them scatter"
    SCATTER = "of unknown size"


class NoValue(EngineRefusal):
    """A quantity has no value whose logarithm could be taken."""


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
    """The interval, where there is one."""
    accuracy: float = 1e-12
    """How far y may be off by rounding, relative to itself."""
    n: int | None = None
    """The number of tokens, where it is one and the same for the reading."""


@dataclass(frozen=True)
class How:
    """What the readings of a quantity share."""

    name: str
    """The parameter that grows."""
    engine: str
    sampling: Sampling
    n: str = SEARCHED


Read = Callable[[Question, Number, How], Value]


def margin_value(asked: Question, at: Number, how: How) -> Value:
    """v(D1) - v(D0) with all signs +."""
    return _of_margin(asked, at, how, lambda found: found.value, lambda found: found.accuracy)


def bits_value(asked: Question, at: Number, how: How) -> Value:
    """log2(|v1| / |margin|)."""
    return _of_margin(
        asked, at, how, lambda found: found.bits, lambda found: found.accuracy / max(abs(found.bits), 1e-9)
    )


def _of_margin(
    asked: Question,
    at: Number,
    how: How,
    value: Callable[[Margin], float],
    accuracy: Callable[[Margin], float],
) -> Value:
    point, mechanism = asked.point({how.name: at}), asked.mechanism({how.name: at})
    literal = is_literal(point, mechanism)
    if literal and how.engine == "auto" and point.n > LITERAL_MOST:
        reason = f"{mechanism.spelled} needs every token, and n={point.n:,} is more than {LITERAL_MOST:,}"
        raise EngineRefusal(reason, ("dense",))
    found = margin(point, mechanism, how.engine)
    if found.lost:
        place = _place(how.name, at, point)
        raise EngineRefusal(
            f"margin is {found.value:.3g} at {place}, lost in float64's rounding: no exponent"
        )
    if found.value <= 0:
        raise _no_exponent("margin", found.value, _place(how.name, at, point))
    tried = ENGINES[found.engine].draws and place_matters(point, mechanism)
    evidence = f"{EVIDENCE[found.engine]}{f', {PLACES}' if tried else ''}"
    ours = not isinstance(mechanism, CustomMechanism)  # weights of a user's own are the same at every length
    drawn = ours and "seed" in mechanism.schema.model_fields and not mechanism.permutation_equivariant
    drawn = drawn or "seed" in point.schema.model_fields
    noise = Noise.PERHAPS if drawn else Noise.NONE
    x = used(how.name, at, point)
    return Value(x, value(found), found.engine, evidence, noise, accuracy=accuracy(found), n=point.n)


def miss_value(asked: Question, at: Number, how: How) -> Value:
    """1 - P(tells apart) = 1 - (1-p0)^m + q^m, arranged so that nothing cancels."""
    point, mechanism = asked.point({how.name: at}), asked.mechanism({how.name: at})
    outcome = solve(point, mechanism, how.engine, how.sampling)
    x, (low, high) = used(how.name, at, point), outcome.interval
    if low < high:
        y, ends = 1 - outcome.distinguish, (1 - high, 1 - low)
        return Value(x, y, outcome.engine, outcome.evidence, Noise.INTERVAL, *ends, n=point.n)
    return Value(x, _miss(outcome, point.m), outcome.engine, outcome.evidence, n=point.n)


def _miss(outcome: Outcome, m: int) -> float:
    fires, neither = float(outcome.p0), float(1 - outcome.p0 - outcome.only)
    early = 1.0 if fires >= 1 else -math.expm1(m * math.log1p(-fires))
    return early + (math.exp(m * math.log(neither)) if neither > 0 else 0.0)


def critical_value(asked: Question, at: Number, how: How) -> Value:
    """The n at which P(tells apart) passes 1/2; the last, if it does so more than once."""
    settled = asked.with_parameter(how.name, at)
    found = boundary_of(settled, search_span(settled, "n", how.n), engine=how.engine, sampling=how.sampling)
    if not found.crossings:
        (start, stop), place = found.ends, _shown(how.name, at)
        raise NoValue(
            f"P is {start.p:.3g} at n={format_exact(start.value)} and {stop.p:.3g} at "
            f"n={format_exact(stop.value)} and does not pass 1/2 between them at {place}: no critical n"
        )
    last = found.crossings[-1]
    low, high = float(last.lo.value), float(last.hi.value)
    sampled = ENGINES[found.engine].draws
    coarse = high / low - 1 > COARSE
    noise = Noise.SCATTER if sampled else Noise.INTERVAL if coarse else Noise.NONE
    return Value(at, high, found.engine, found.evidence, noise, low, high, high / low - 1)


COARSE = 1e-4
"""Where neighbouring n differ by more, a critical n is known to an interval only."""


def lost_value(number_format: str) -> Read:
    """The n from which on both labels are read as the same number of a format."""

    def read(asked: Question, at: Number, how: How) -> Value:
        settled = replace(asked, fixed={"n": ANY_N, **asked.fixed})
        point, mechanism = settled.point({how.name: at}), settled.mechanism({how.name: at})
        n = lost_from(point, mechanism)[number_format]
        if n is None:
            place = _shown(how.name, at)
            raise NoValue(f"none found up to n=1e40: nothing is lost in {number_format} at {place}")
        coarse = point.step / n > COARSE
        noise = Noise.INTERVAL if coarse else Noise.NONE
        evidence = "pre-activations in rationals and balls, rounded to the format"
        return Value(at, float(n), "certified", evidence, noise, n - point.step, n, point.step / n)

    return read


QUANTITIES: dict[str, Read] = {
    "margin": margin_value,
    "bits": bits_value,
    "miss": miss_value,
    "critical_n": critical_value,
    **{f"lost_{name}": lost_value(name) for name in SIGNIFICANT_BITS},
}
"""What can be followed as a parameter grows."""
DRAWN = ("miss", "critical_n")
"""Quantities for which signs are drawn where there is no closed form."""
SEARCHING = tuple(name for name in QUANTITIES if name.startswith(("critical", "lost")))
"""Quantities that are themselves a number of tokens."""


def positive(of: str, value: Value, name: str) -> Value:
    """The value, if it has a logarithm."""
    if not 0 < value.y < math.inf:
        raise _no_exponent(of, value.y, _shown(name, value.x))
    return value


def _no_exponent(of: str, y: float, place: str) -> NoValue:
    return NoValue(f"{of} is {y:.3g} at {place}: no exponent, since only what is above 0 can be a power")


def used(name: str, at: Number, point: Construction) -> Number:
    """The value that was used: of n, the admissible one nearest to what was asked for."""
    return point.n if name == "n" else at


def _place(name: str, at: Number, point: Construction) -> str:
    return _shown(name, used(name, at, point))


def _shown(name: str, at: Number) -> str:
    return f"{name}={format_exact(at)}"


def split_n(of: str, parameters: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """The n to search for a critical one, and the other parameters."""
    if of not in SEARCHING or "n" not in parameters:
        return SEARCHED, dict(parameters)
    n, rest = str(parameters["n"]), {name: value for name, value in parameters.items() if name != "n"}
    if of != "critical_n":
        raise UsageError(f"{of} is itself a number of tokens; leave out n={n} and give another axis")
    if not is_axis(n) or len(n.replace(":log", "").split(":")) != 2:
        raise UsageError(f"critical_n is looked for among many n; write n=start:stop, or leave out n={n}")
    return n, rest
