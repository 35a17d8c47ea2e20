"""The growth of measured costs with the length or the width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.analysis.costs.cost import WIDTH, count_operations, find_disagreement, measure
from separatrix.analysis.costs.curves import Cost, CostCurve
from separatrix.analysis.laws.powerlaw import MIN_POINTS, Law
from separatrix.analysis.laws.quantities import Noise, Value, require_positive
from separatrix.analysis.laws.scaling import fit_law, fit_scaling
from separatrix.analysis.laws.scaling_result import Scaling
from separatrix.core.errors import EngineRefusal, UsageError
from separatrix.core.numbers import parse_integer
from separatrix.core.parameters.ranges import Axis, Number
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.features._base import FeatureMechanism
from separatrix.mechanisms.positional._wrapper import WrapperMechanism

MAX_COSTS = {"n": 65_536, "d": 4096}
"""The largest length and width for which costs are measured: larger ones take too long."""
MIN_COUNTED = 16
"""The longest length at which operations are counted is at least this, even for a smaller n."""
USUAL_COUNTED = 1024
"""The longest length at which operations are counted if n is larger and no window needs more."""
WINDOW_FACTOR = 16
"""Operations are counted up to this many times a window, a block or another size of the mechanism, at most up to n."""


def cost_value(of: str, x: Number, cost: Cost, evidence: str = "measured on this machine") -> Value:
    """Return the cost `of`, one of COSTS, at one length or width; only time is noisy."""
    return Value(x, float(getattr(cost, of)), "measured", evidence, Noise.SCATTER if of == "seconds" else Noise.NONE)


def cost_law(curve: CostCurve, of: str) -> Law | None:
    """Fit the growth of one of COSTS with the length; None if there are too few values, or zeros."""
    values = [cost_value(of, cost.length, cost) for cost in curve.costs]
    is_enough = len(values) >= MIN_POINTS and all(value.y > 0 for value in values)
    return fit_law(values) if is_enough else None


def operations_law(mechanism: Mechanism, lengths: Sequence[int], width: int = WIDTH) -> Law | None:
    """Fit the growth of the counted operations of one head with the length; None if there are none.

    >>> from separatrix.mechanisms import mechanism_named
    >>> law = operations_law(mechanism_named("softmax"), (64, 128, 256))
    >>> round(law.exponent, 6)
    2.0
    """
    flops = count_operations(mechanism, lengths, width)
    if not all(flops.values()):
        return None
    return fit_law([Value(n, float(count), "measured", "counted") for n, count in flops.items()])


def counted_lengths(mechanism: Mechanism, n: int) -> tuple[int, int, int]:
    """Return three lengths, each twice the one before: up to n, and if possible much longer than any window.

    >>> from separatrix.mechanisms import mechanism_named
    >>> for name, n in (("softmax", 131_072), ("window:size=4096", 131_072), ("window:size=4096", 2048)):
    ...     print(name, counted_lengths(mechanism_named(name), n))
    softmax (256, 512, 1024)
    window:size=4096 (16384, 32768, 65536)
    window:size=4096 (512, 1024, 2048)
    """
    longest = max(MIN_COUNTED, min(n, max(USUAL_COUNTED, WINDOW_FACTOR * _window_length(mechanism))))
    return longest // 4, longest // 2, longest


def _window_length(mechanism: Mechanism) -> int:
    """Return the longest window, block or other size in tokens among the parameters; 0 without any."""
    if isinstance(mechanism, WrapperMechanism):
        return _window_length(mechanism.inner_mechanism)
    if isinstance(mechanism, FeatureMechanism):  # its numbers of features are not lengths
        return 0
    parameters = mechanism.parameters.complete_values().items()
    return max((value for name, value in parameters if type(value) is int and name != "seed"), default=0)


def fit_operations(mechanism: Mechanism, n: int, width: int) -> tuple[float | None, tuple[int, ...]]:
    """Return the exponent of the growth of operations with n, and the lengths at which they were counted.

    A mechanism without a causal form is counted in its only form. The exponent is None if operations cannot be counted.
    """
    lengths = counted_lengths(mechanism, n)
    try:
        law = operations_law(mechanism, lengths, width)
    except Exception:  # a user's mechanism may raise anything
        law = None
    return (None, ()) if law is None else (law.exponent, lengths)


def cost_scaling(question: Question, axis: Axis, of: str, confidence: float, tell: Callable[[str], None]) -> Scaling:
    """Measure a cost against the length n or the width d, for seeded tokens, not the construction's."""
    if axis.name not in MAX_COSTS:
        raise UsageError(f"{of} depends on the length n and the width d alone, so not on {axis.name}")
    if axis.values[-1] > MAX_COSTS[axis.name]:
        raise UsageError(f"{axis.span.spelled} goes beyond {MAX_COSTS[axis.name]:,}, the limit for measuring cost")
    mechanism = question.mechanism({})
    tell(f"{mechanism.spelled}: comparing the fast form with the definition")
    difference = find_disagreement(mechanism)
    if difference is not None:
        raise EngineRefusal(f"{mechanism.spelled} is not measured: {difference}")
    tell(f"{mechanism.spelled}: {of}")
    costs, setting = _measure_costs(question, mechanism, axis)
    evidence = f"measured on this machine, one head, {setting}, seeded tokens in float32"
    values = [require_positive(of, cost_value(of, x, cost, evidence), axis.name) for x, cost in costs]
    skip_count = len(axis.values) - len(values)
    if len(values) < MIN_POINTS:
        raise EngineRefusal(
            f"{mechanism.spelled} took too long at {axis.name}={values[-1].x}, so that only {len(values)} "
            "values were measured; take shorter lengths"
        )
    remark = f"{skip_count} of {len(axis.values)} lengths are left out: the one before took too long. "
    return fit_scaling(question, axis.name, of, values, remark if skip_count else "", confidence)


def _measure_costs(question: Question, mechanism: Mechanism, axis: Axis) -> tuple[list[tuple[Number, Cost]], str]:
    """Measure the cost at every length or width; return the costs, and the fixed size in words."""
    fixed_name, default, meaning = ("d", WIDTH, "width") if axis.name == "n" else ("n", 1024, "length")
    size = parse_integer(question.fixed.get(fixed_name, default), fixed_name)
    if not 1 <= size <= MAX_COSTS[fixed_name]:
        limits = f"{meaning}s of 1 to {MAX_COSTS[fixed_name]:,}"
        raise UsageError(f"{fixed_name}={size} is out of range; cost is measured at {limits}")
    values = [int(value) for value in axis.values]
    if axis.name == "n":
        costs = measure(mechanism, values, size).costs
    else:
        costs = [measure(mechanism, [size], width).costs[0] for width in values]
    # Measuring stops early if it takes too long.
    return list(zip(axis.values, costs, strict=False)), f"{meaning} {size}"
