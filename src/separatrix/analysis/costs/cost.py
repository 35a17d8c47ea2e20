"""The cost of a mechanism on this machine: time, memory, operations and state, against the length.

All costs are those of causal use: one causal pass over the tokens, and the state that must then be kept to
decode the next one. A mechanism without a causal form is measured in the form it has.
"""

from __future__ import annotations

import math
import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from separatrix.analysis.costs.curves import Bench, Cost, CostCurve, Disagreement, MeasuredCost, compare_with_softmax
from separatrix.core.errors import UsageError, describe_failure
from separatrix.mechanisms import Causality, Mechanism, Softmax, examples
from separatrix.mechanisms.decoding import DecodingMemory
from separatrix.mechanisms.load import mechanisms_from
from separatrix.mechanisms.recurrent._base import RecurrentMechanism

Tell = Callable[[str], None]
Triple = tuple[Tensor, Tensor, Tensor]
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
WIDTH = 64
REPEATS = 3
CHECK_LENGTH, CHECK_CHUNK = 300, 128
"""Tokens on which the fast form is compared with the definition, and the chunks of a recurrent form."""
MAX_COMPUTED_LENGTH = 4096
"""Tokens up to which operations are counted while they are computed."""
MAX_RUN_SECONDS = 1.0
"""No longer length is measured after a run that takes this long."""


def _fused_flops(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(q, k, v))  # type: ignore[no-untyped-call]


# torch's counter knows fused attention on accelerators only, not on the CPU.
FUSED = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _fused_flops}


def bench(mechanisms: Any = None, *, lengths: Sequence[int] | None = None, tell: Tell = lambda _: None) -> Bench:
    """Measure the cost of mechanisms on this machine, if their fast form agrees with the definition.

    **Arguments:**

    - `mechanisms`: as for `verdict`, several as `"softmax,linear"` or a list; all by default.
    - `lengths`: numbers of tokens; after a run that takes longer than a second, longer ones are skipped.
    - `tell`: called with the name of each mechanism before it is measured.

    >>> result = bench("linear", lengths=[64, 128])
    >>> result.curves[0].lengths, result.curves[0].flops[0] > 0
    ((64, 128), True)
    """
    if lengths is not None and not (lengths and min(lengths) >= 1):
        raise UsageError(f"lengths={lengths} has no lengths to measure; give numbers of tokens, as [1024]")
    tell("softmax")
    softmax, costs = measure_cost(Softmax(), lengths), []
    for mechanism in examples() if mechanisms is None else mechanisms_from(mechanisms):
        tell(mechanism.spelled)
        cost = softmax if mechanism.spelled == "softmax" else measure_cost(mechanism, lengths)
        costs.append(compare_with_softmax(cost, softmax))
    return Bench(tuple(costs), softmax)


def measure_cost(mechanism: Mechanism, lengths: Sequence[int] | None = None) -> MeasuredCost:
    """Measure the cost, unless the fast form disagrees with the definition or fails."""
    try:
        difference = find_disagreement(mechanism)
        if difference is not None:
            return Disagreement(mechanism.spelled, difference)
        return measure(mechanism, lengths)
    except Exception as error:  # a user's mechanism may raise anything
        return Disagreement(mechanism.spelled, f"it {describe_failure(error)}")


@torch.no_grad()
def find_disagreement(mechanism: Mechanism) -> str | None:
    """Return how the fast form differs from the definition; None if they agree.

    The form of a recurrent mechanism that reads tokens in chunks is compared as well.
    """
    causal = mechanism.causality is not Causality.NEVER
    heads = mechanism.fixed_heads or 1
    q, k, v = draw_tokens(CHECK_LENGTH, mechanism.fixed_width or WIDTH, torch.float64, heads)
    outputs, reference = [mechanism(q, k, v, causal=causal)], mechanism.definition(q, k, v, causal=causal)
    if isinstance(mechanism, RecurrentMechanism):
        outputs.append(mechanism.chunked(q, k, v, CHECK_CHUNK)[0])
    # The floor keeps outputs that are all 0 from dividing by 0.
    scale = reference.abs().max().clamp_min(1e-300)
    error = float(torch.stack([(output - reference).abs().max() / scale for output in outputs]).max())
    if math.isnan(error):
        return "it returns numbers that are not finite"
    # Both forms compute in float64, where rounding stays far below 1e-9.
    return None if error <= 1e-9 else f"the fast form is off by {error:.2g} of the definition"


def draw_tokens(length: int, width: int = WIDTH, dtype: torch.dtype = torch.float32, heads: int = 1) -> Triple:
    """Draw seeded positive tokens whose moderate logits suit every mechanism."""
    generator = torch.Generator().manual_seed(0)
    # Linear kernels divide by sums of scores, which tokens of both signs would bring near 0.
    tokens = torch.rand((3, 1, heads, length, width), generator=generator) / math.sqrt(width)
    q, k, v = tokens.to(dtype)
    return q, k, v


def measure(mechanism: Mechanism, lengths: Sequence[int] | None = None, width: int = WIDTH) -> CostCurve:
    """Measure the cost at each of `lengths`, at this `width` of a head (or its own), until it takes long."""
    width = mechanism.fixed_width or width
    costs = _measure_lengths(mechanism, lengths or LENGTHS, width)
    lengths, seconds, peaks, flops, states = zip(*costs, strict=True)
    content = decoding_state(mechanism, 1, 1, width, torch.float32).kind
    return CostCurve(mechanism.spelled, width, lengths, seconds, peaks, flops, states, content)


def _measure_lengths(mechanism: Mechanism, lengths: Sequence[int], width: int) -> Iterator[Cost]:
    causal = mechanism.causality is not Causality.NEVER
    heads = mechanism.fixed_heads or 1
    for length in lengths:
        run = torch.no_grad()(partial(mechanism, *draw_tokens(length, width, heads=heads), causal=causal))
        flops = _count_flops(run)  # first, so that the timed runs are warm
        state_bytes = decoding_state(mechanism, length, heads, width, torch.float32).bytes
        cost = Cost(length, _median_seconds(run), peak_bytes(run), flops, state_bytes)
        yield cost
        if cost.seconds > MAX_RUN_SECONDS:
            return


def decoding_state(mechanism: Mechanism, tokens: int, heads: int, width: int, dtype: torch.dtype) -> DecodingMemory:
    """Return the size and the kind of what one layer keeps of this many tokens, at sizes that it supports.

    The bytes are those of a layer's cache (`Mechanism.decoding_memory`): states in float32 at least, keys and
    values in `dtype`, and the per-token extras that the mechanism still needs.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> for name in ("softmax", "window:size=8", "elu", "delta"):
    ...     memory = decoding_state(mechanism_named(name), 1000, heads=2, width=4, dtype=torch.bfloat16)
    ...     print(name, memory.bytes, memory.kind)
    softmax 32000 cache of all keys and values
    window:size=8 224 cache of the keys and values that later tokens can still read
    elu 160 state of fixed size
    delta 128 state of fixed size
    """
    return mechanism.decoding_memory(
        tokens,
        mechanism.fixed_heads or heads,
        mechanism.fixed_width or width,
        mechanism.fixed_features or mechanism.fixed_width or width,
        dtype,
    )


def count_operations(mechanism: Mechanism, lengths: Sequence[int], width: int = WIDTH) -> dict[int, int]:
    """Count the operations of one head in a causal pass, as products of matrices, at each length.

    Without a causal form they are those of the other form. Beyond MAX_COMPUTED_LENGTH tokens only shapes
    are propagated, and nothing is multiplied.

    >>> from separatrix.mechanisms import mechanism_named
    >>> count_operations(mechanism_named("softmax"), [8, 16], width=4)  # 4 n^2 width
    {8: 1024, 16: 4096}
    """
    causal = mechanism.causality is not Causality.NEVER
    flops, heads = {}, mechanism.fixed_heads or 1
    for length in lengths:
        # The count depends on shapes alone, so long inputs need neither time nor memory.
        with FakeTensorMode() if length > MAX_COMPUTED_LENGTH else nullcontext():
            tokens = draw_tokens(length, mechanism.fixed_width or width, heads=heads)
            flops[length] = _count_flops(partial(mechanism, *tokens, causal=causal))
    return flops


@torch.no_grad()
def _count_flops(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        run()
    return int(counter.get_total_flops())


def _median_seconds(run: Callable[[], object]) -> float:
    """Return the median time of a few runs, or the time of one if it takes too long."""
    times: list[float] = []
    while len(times) < REPEATS and not (times and times[0] > MAX_RUN_SECONDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    # The median: a single interruption by another process does not change it.
    return statistics.median(times)


class PeakBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of tensors alive at once that were allocated while it was active.

    Memory inside a fused kernel is not seen; every tensor is.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current: int = 0
        self.peak: int = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count the storages it allocates."""
        tensors = (leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, Tensor))
        inputs = {tensor.untyped_storage()._cdata for tensor in tensors}
        output = function(*args, **(kwargs or {}))
        for leaf in tree_iter(output):
            if isinstance(leaf, Tensor):
                self._count(leaf, inputs)
        return output

    def _count(self, tensor: Tensor, inputs: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in inputs or key in self._storages:
            return
        self._storages.add(key)
        self.current += size
        self.peak = max(self.peak, self.current)
        # torch may reuse an address: it must be forgotten at the moment the storage is freed.
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.current -= size


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak of the bytes of tensors that `run` allocates."""
    with PeakBytes() as counter:
        run()
    return int(counter.peak)
