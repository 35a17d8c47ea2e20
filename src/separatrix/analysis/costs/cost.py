"""What a mechanism costs on this machine: time, memory, operations and state, against the length.

All of it is about causal use: one causal pass over so many tokens, and what must then be kept to decode the
next one. A mechanism without a causal form is measured in the form that it has.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from separatrix.analysis.costs.memory import peak_bytes
from separatrix.analysis.costs.state import kept
from separatrix.core.errors import UsageError, raised
from separatrix.core.result import Result, Row
from separatrix.mechanisms import Causality, Mechanism, Softmax, examples
from separatrix.mechanisms.load import mechanisms_from
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

if TYPE_CHECKING:
    from separatrix.core.schemas import mechanisms as documents

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
WIDTH = 64
REPEATS = 3
CHECKED, CUT = 300, 128
"""Tokens on which the fast form is checked before it is timed, and the runs they are cut into."""
LONGEST_RUN = 4096
"""Tokens up to which operations are counted while they are done."""
PATIENCE = 1.0
"""Seconds: lengths are not taken further once one run takes this long."""


def fused_flops(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    """The operations of torch's fused attention on the CPU, which its counter knows on accelerators only."""
    return int(sdpa_flop_count(q, k, v))  # type: ignore[no-untyped-call]


FUSED = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: fused_flops}


@dataclass(frozen=True)
class Cost:
    """The cost at one length."""

    length: int
    seconds: float
    peak_bytes: int
    flops: int
    state_bytes: int
    """What must be kept after so many tokens to decode the next one."""


@dataclass(frozen=True)
class CostCurve:
    """Costs at growing lengths, and how they grow."""

    mechanism: str
    width: int
    costs: tuple[Cost, ...]
    state: str
    """What `state_bytes` counts: STATE, WINDOW or CACHE of `costs.state`."""

    def as_json(self) -> dict[str, Any]:
        """As `bench --json` and `assess --json` print it."""
        return {
            "mechanism": self.mechanism,
            "width": self.width,
            "lengths": [cost.length for cost in self.costs],
            "seconds": [cost.seconds for cost in self.costs],
            "peak_bytes": [cost.peak_bytes for cost in self.costs],
            "flops": [cost.flops for cost in self.costs],
            "state_bytes": [cost.state_bytes for cost in self.costs],
            "state_is": self.state,
        }

    def crossover(self, other: CostCurve) -> int | None:
        """The least measured length from which on this one is faster than `other`; None if it never is.

        Only lengths measured for both are compared: nothing is extrapolated.
        """
        theirs = {cost.length: cost.seconds for cost in other.costs}
        faster = [(c.length, c.seconds < theirs[c.length]) for c in self.costs if c.length in theirs]
        found = None
        for length, wins in reversed(faster):
            if not wins:
                break
            found = length
        return found


@dataclass(frozen=True)
class Disagreement:
    """A mechanism that is not timed, because what would be timed is wrong."""

    mechanism: str
    what: str

    def as_json(self) -> dict[str, Any]:
        """As `bench --json` and `assess --json` print it."""
        return {"mechanism": self.mechanism, "disagreement": self.what}


@dataclass(frozen=True, repr=False)
class Bench(Result):
    """Costs in one run, and softmax's in the same run to compare them with."""

    kind: ClassVar[str] = "bench"
    columns: ClassVar[tuple[str, ...]] = (
        *("mechanism", "length", "seconds", "peak_bytes", "flops", "state_bytes"),
        "faster_than_softmax_from",
    )
    found: tuple[CostCurve | Disagreement, ...]
    softmax: CostCurve | Disagreement

    @property
    def summary(self) -> str:
        """Which mechanisms were timed, up to which length."""
        timed = [each for each in self.found if isinstance(each, CostCurve)]
        longest = max((cost.length for each in timed for cost in each.costs), default=0)
        left = len(self.found) - len(timed)
        but = f"; {left} not timed" if left else ""
        return f"cost up to n = {longest:,} of {', '.join(each.mechanism for each in timed)}{but}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and length; those that disagree with their definition have none."""
        return [
            {
                "mechanism": each.mechanism,
                **asdict(cost),
                "faster_than_softmax_from": crossover(each, self.softmax),
            }
            for each in self.found
            if isinstance(each, CostCurve)
            for cost in each.costs
        ]

    def as_json(self) -> list[documents.Cost | documents.NotTimed]:
        """What `separatrix bench --json` prints."""
        return cast(
            "list[documents.Cost | documents.NotTimed]",
            [cost_json(each, self.softmax) for each in self.found],
        )


def bench(
    mechanisms: Any = None,
    *,
    lengths: Sequence[int] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Bench:
    """What mechanisms cost on this machine, where the fast form agrees with the definition.

    **Arguments:**

    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; one of each without any.
    - `lengths`: numbers of tokens to measure at; none is taken after one that lasts longer than a second.
    - `tell`: hears of each mechanism before it is measured.

    >>> found = bench("linear", lengths=[64, 128])
    >>> [cost.length for cost in found.found[0].costs], found.found[0].costs[0].flops > 0
    ([64, 128], True)
    """
    if lengths is not None and not (lengths and min(lengths) >= 1):
        raise UsageError(f"lengths={lengths} are none to measure at; give numbers of tokens, as [1024]")
    tell("softmax")
    softmax, found = checked_cost(Softmax(), lengths), []
    for mechanism in examples() if mechanisms is None else mechanisms_from(mechanisms):
        tell(mechanism.spelled)
        found.append(softmax if mechanism.spelled == "softmax" else checked_cost(mechanism, lengths))
    return Bench(tuple(found), softmax)


def checked_cost(mechanism: Mechanism, lengths: Sequence[int] | None = None) -> CostCurve | Disagreement:
    """The cost, if the fast form agrees with the definition and does not break on the way."""
    try:
        what = disagreement(mechanism)
        return measure(mechanism, lengths) if what is None else Disagreement(mechanism.spelled, what)
    except Exception as error:  # a stranger's mechanism may raise anything
        return Disagreement(mechanism.spelled, f"it {raised(error)}")


def crossover(cost: CostCurve | Disagreement, softmax: CostCurve | Disagreement) -> int | None:
    """The length from which on a mechanism is faster than softmax, where both were timed."""
    if isinstance(cost, Disagreement) or isinstance(softmax, Disagreement):
        return None
    return cost.crossover(softmax)


def cost_json(cost: CostCurve | Disagreement, softmax: CostCurve | Disagreement) -> dict[str, Any]:
    """A cost with its crossover against softmax."""
    return {**cost.as_json(), "faster_than_softmax_from": crossover(cost, softmax)}


def is_measured_causal(mechanism: Mechanism) -> bool:
    """Whether costs are those of the causal form: always, unless there is none."""
    return mechanism.causality is not Causality.NEVER


@torch.no_grad()
def disagreement(mechanism: Mechanism) -> str | None:
    """How the fast form differs from the definition, if it does; a recurrent one is cut into runs as well."""
    causal = is_measured_causal(mechanism)
    heads = mechanism.fixed_heads or 1
    q, k, v = tokens(CHECKED, mechanism.fixed_width or WIDTH, torch.float64, heads)
    fast, slow = [mechanism(q, k, v, causal=causal)], mechanism.definition(q, k, v, causal=causal)
    if isinstance(mechanism, RecurrentMechanism):
        fast.append(mechanism.chunked(q, k, v, CUT)[0])
    size = slow.abs().max().clamp_min(1e-300)
    apart = float(torch.stack([(each - slow).abs().max() / size for each in fast]).max())
    if math.isnan(apart):
        return "it returns numbers that are not finite"
    return None if apart <= 1e-9 else f"the fast form is off by {apart:.2g} of the definition"


def tokens(
    length: int, width: int = WIDTH, dtype: torch.dtype = torch.float32, heads: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Seeded positive tokens of moderate logits, as every mechanism can bear."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand((3, 1, heads, length, width), generator=generator) / math.sqrt(width)
    q, k, v = drawn.to(dtype)
    return q, k, v


def measure(mechanism: Mechanism, lengths: Sequence[int] | None = None, width: int = WIDTH) -> CostCurve:
    """The cost at each of `lengths`, at this `width` of a head (or its own), until one takes too long."""
    width = mechanism.fixed_width or width
    costs = tuple(_costs(mechanism, lengths or LENGTHS, width))
    return CostCurve(mechanism.spelled, width, costs, kept(mechanism, 1, 1, width, torch.float32).kind)


def _costs(mechanism: Mechanism, lengths: Sequence[int], width: int) -> Iterator[Cost]:
    causal = is_measured_causal(mechanism)
    heads = mechanism.fixed_heads or 1
    for length in lengths:
        q, k, v = tokens(length, width, heads=heads)

        def run(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            with torch.no_grad():
                return mechanism(q, k, v, causal=causal)

        flops = _counted(run)
        carried = kept(mechanism, length, heads, width, torch.float32).bytes
        cost = Cost(length, _seconds(run), peak_bytes(run), flops, carried)
        yield cost
        if cost.seconds > PATIENCE:
            return


def operations(mechanism: Mechanism, lengths: Sequence[int], width: int = WIDTH) -> dict[int, int]:
    """The operations of one head in a causal pass over so many tokens: products of matrices, counted.

    They are those of the form without causal where there is no causal form. Beyond LONGEST_RUN tokens shapes
    are followed through the computation, and nothing is multiplied.

    >>> from separatrix.mechanisms import mechanism_named
    >>> operations(mechanism_named("softmax"), [8, 16], width=4)  # 4 n^2 width
    {8: 1024, 16: 4096}
    """
    causal = is_measured_causal(mechanism)
    found, heads = {}, mechanism.fixed_heads or 1
    for length in lengths:
        with FakeTensorMode() if length > LONGEST_RUN else nullcontext():
            some = tokens(length, mechanism.fixed_width or width, heads=heads)
            found[length] = _counted(partial(mechanism, *some, causal=causal))
    return found


@torch.no_grad()
def _counted(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        run()
    return int(counter.get_total_flops())


def _seconds(run: Callable[[], object]) -> float:
    """The median time of a few runs, or that of one which takes too long; the caller has warmed up."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if times[0] > PATIENCE:
            break
    return statistics.median(times)
