"""How a quantity grows: of what is told apart, or of what attention costs on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from separatrix.cards.cost import COSTS, WIDTH, Cost, cost_value, disagreement, measure
from separatrix.engines import EngineRefusal, Sampling
from separatrix.laws.quantities import QUANTITIES, positive
from separatrix.laws.scaling import find_scaling, known, read_growing, summed_up
from separatrix.laws.scaling_result import Scaling
from separatrix.mechanisms import Mechanism
from separatrix.numbers import parse_integer
from separatrix.parameters import UsageError
from separatrix.parameters.ranges import Number
from separatrix.verdicts.question import Question

LONGEST, WIDEST = 65_536, 4096
"""Lengths and widths beyond these take longer than anybody waits."""
EVERY = {**QUANTITIES, **COSTS}
"""Every quantity whose growth can be asked for."""


def scaling(
    construction: str,
    mechanism: Any,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    **parameters: object,
) -> Scaling:
    """How `of` grows with the one parameter given as `start:stop:count` or `start:stop:count:log`.

    >>> found = scaling("spike", "linear", n="1e3:1e9:7:log",
    ...                 d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1")
    >>> found.law.power_law, round(found.law.exponent, 6), found.formula
    (True, -1.0, '5.98967 n^-1')
    """
    return find_law(construction, mechanism, parameters, of=of, engine=engine, sampling=sampling)


def find_law(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object],
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Scaling:
    """As `scaling`, with the parameters as a mapping."""
    known(of, EVERY)
    if of in COSTS:
        return _cost(construction, mechanism, parameters, of, sampling or Sampling(), tell)
    return find_scaling(
        construction, mechanism, parameters, of=of, engine=engine, sampling=sampling, tell=tell
    )


def _cost(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object],
    of: str,
    sampling: Sampling,
    tell: Callable[[str], None],
) -> Scaling:
    """Cost against the length n or the width d, of seeded tokens and not the construction's."""
    asked, axis = read_growing(construction, mechanism, parameters)
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
    if len(values) < 3:
        raise EngineRefusal(
            f"{attends.spelled} took too long at {axis.name}={values[-1].x}, so that only {len(values)} "
            "values were measured; take shorter lengths"
        )
    remark = f"{short} of {len(axis.values)} lengths are left out: the one before took too long. "
    return summed_up(asked, axis.name, of, values, remark if short else "", sampling.confidence)


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
