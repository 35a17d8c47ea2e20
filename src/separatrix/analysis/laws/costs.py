"""How what attention costs on this machine grows with the length or the width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.analysis.costs.cost import WIDTH, Cost, CostCurve, disagreement, measure, operations
from separatrix.analysis.laws.powerlaw import FEWEST, Law
from separatrix.analysis.laws.quantities import Noise, Value, positive
from separatrix.analysis.laws.scaling import law_of, summed_up
from separatrix.analysis.laws.scaling_result import Scaling
from separatrix.core.numbers import parse_integer
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.ranges import Axis, Number
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Mechanism

LONGEST, WIDEST = 65_536, 4096
"""Lengths and widths beyond these take longer than anybody waits."""


def cost_value(of: str, x: Number, cost: Cost, evidence: str = "measured on this machine") -> Value:
    """One of COSTS at one length or width; only time is noisy."""
    noise = Noise.SCATTER if of == "seconds" else Noise.NONE
    return Value(x, float(getattr(cost, of)), "measured", evidence, noise)


def cost_law(curve: CostCurve, of: str) -> Law | None:
    """How one of COSTS grows with the length; None where there are too few, or nothing to grow."""
    values = [cost_value(of, cost.length, cost) for cost in curve.costs]
    enough = len(values) >= FEWEST and all(value.y > 0 for value in values)
    return law_of(values) if enough else None


def operations_law(mechanism: Mechanism, lengths: Sequence[int], width: int = WIDTH) -> Law | None:
    """How the operations of one head grow with the length, counted; None where none are.

    >>> from separatrix.mechanisms import mechanism_named
    >>> law = operations_law(mechanism_named("softmax"), (64, 128, 256))
    >>> round(law.exponent, 6)
    2.0
    """
    counted = operations(mechanism, lengths, width)
    if not all(counted.values()):
        return None
    return law_of([Value(n, float(flops), "measured", "counted") for n, flops in counted.items()])


def cost_scaling(
    asked: Question, axis: Axis, of: str, confidence: float, tell: Callable[[str], None]
) -> Scaling:
    """Cost against the length n or the width d, of seeded tokens and not the construction's."""
    if axis.name not in ("n", "d"):
        raise UsageError(f"{of} depends on the length n and the width d alone, so not on {axis.name}")
    most = LONGEST if axis.name == "n" else WIDEST
    if axis.values[-1] > most:
        raise UsageError(f"{axis.span.spelled} goes beyond {most:,}, farther than cost is measured")
    attends = asked.mechanism({})
    tell(f"{attends.spelled}: whether the fast form agrees with the definition")
    wrong = disagreement(attends)
    if wrong is not None:
        raise EngineRefusal(f"{attends.spelled} is not measured: {wrong}")
    tell(f"{attends.spelled}: {of}")
    found, width = _measured(asked, attends, axis.name, [int(value) for value in axis.values])
    evidence = f"measured on this machine, one head, {width}, seeded tokens in float32"
    values = [positive(of, cost_value(of, x, cost, evidence), axis.name) for x, cost in found]
    short = len(axis.values) - len(values)
    if len(values) < FEWEST:
        raise EngineRefusal(
            f"{attends.spelled} took too long at {axis.name}={values[-1].x}, so that only {len(values)} "
            "values were measured; take shorter lengths"
        )
    remark = f"{short} of {len(axis.values)} lengths are left out: the one before took too long. "
    return summed_up(asked, axis.name, of, values, remark if short else "", confidence)


def _measured(
    asked: Question, mechanism: Mechanism, name: str, values: Sequence[int]
) -> tuple[list[tuple[Number, Cost]], str]:
    """The cost at every length, or at every width, and what was held fixed."""
    if name == "n":
        width = parse_integer(asked.fixed.get("d", WIDTH), "d")
        if not 1 <= width <= WIDEST:
            raise UsageError(f"d={width} is out of range; cost is measured at widths of 1 to {WIDEST:,}")
        costs = measure(mechanism, values, width).costs
        return [(cost.length, cost) for cost in costs], f"width {width}"
    length = parse_integer(asked.fixed.get("n", 1024), "n")
    if not 1 <= length <= LONGEST:
        raise UsageError(f"n={length} is out of range; cost is measured at lengths of 1 to {LONGEST:,}")
    return [(d, measure(mechanism, [length], d).costs[0]) for d in values], f"length {length}"
