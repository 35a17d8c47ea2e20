"""The fast form agrees with the definition at every length, width and precision, in any memory layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import torch
from torch import Tensor

from separatrix.contract._base import Skipped, check
from separatrix.contract.calls import call_definition, call_fast
from separatrix.contract.comparisons import largest_size, require_close, rounding_bound
from separatrix.contract.inputs import LENGTHS, LONG_LENGTHS, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.contract.trials import draw_trial, draw_trials, perturb, refusal_types
from separatrix.core.errors import one_line
from separatrix.mechanisms import Causality, Mechanism
from separatrix.mechanisms.custom import CustomMechanism

LARGE_BATCH, MANY_HEADS = 9, 17
PERTURBATION = 1e-9
"""The relative change of signed tokens that measures by how much rounding is magnified there."""
MAX_MAGNIFICATION = 1e4
LARGE_LOGITS = (100.0, 1e4)
"""Sizes of the largest logit: above the range of exponentials in float32, and far above."""
LARGE_LOGITS_TOLERANCE = 1e-6
"""Kernels that cancel lose digits on large logits; one that truncates them is off by far more."""
WIDTHS = ((4, 1), (16, 33), (48, 24), (64, 64), (65, 2), (66, 66), (80, 96), (96, 80), (128, 100))
"""Widths of queries and keys, and of values, at and beside the sizes of blocks."""
CROSS_LENGTHS = ((11, 4), (3, 33), (1, 7), (7, 1), (1, 130), (130, 2))
"""Different numbers of queries and of keys."""
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "strided": lambda x: x.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2),
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "expanded": lambda x: x[:, :1].expand_as(x),
}
"""Layouts in memory: all axes permuted; the heads of a token side by side, as a projection leaves them; the first
head for all heads, without copies."""


@check("batch_independence", "head_independence", "causality", "chunks")
def definition(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition at every length, in float64 and float32."""
    for causal, inputs, tolerance in draw_trials(mechanism, LENGTHS, (torch.float64, torch.float32)):
        case = f"{inputs.q.shape[-2]} tokens, {inputs.q.dtype}"
        require_definition(mechanism, causal, inputs, tolerance, case)
    for causal in causal_modes(mechanism):
        shape = fit_shape(mechanism, LARGE_BATCH, MANY_HEADS)
        inputs, tolerance = draw_trial(mechanism, causal, shape=shape)
        require_definition(mechanism, causal, inputs, tolerance, f"batch {LARGE_BATCH}, {shape[1]} heads")


@check("definition")
def signed_tokens(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition on tokens of both signs, unless rounding hides it."""
    shape = fit_shape(mechanism)
    inputs = (draw_tokens(length, shape=shape, is_signed=True) for length in (LENGTHS[2], LENGTHS[-1]))
    _require_definition_at_own_rounding(mechanism, inputs, "tokens of both signs")


@check("signed_tokens")
def large_logits(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition on logits up to 100 and 1e4, unless rounding hides it."""
    q, k, v = draw_tokens(shape=fit_shape(mechanism))
    largest_logit = (q @ k.mT).max().item()
    inputs = (Tokens(q * (size / largest_logit), k, v) for size in LARGE_LOGITS)
    _require_definition_at_own_rounding(mechanism, inputs, "large logits", LARGE_LOGITS_TOLERANCE)


def require_definition(mechanism: Mechanism, causal: bool, inputs: Tokens, tolerance: float, case: str) -> None:
    """Raise Broken unless the fast form agrees with the definition."""
    reference = call_definition(mechanism, *inputs, causal=causal)
    message = f"the fast form differs from the definition ({case}, causal={causal})"
    require_close(call_fast(mechanism, *inputs, causal=causal), reference, tolerance, message)


def _require_definition_at_own_rounding(
    mechanism: Mechanism, trials: Iterable[Tokens], noun: str, min_tolerance: float = 0.0
) -> None:
    """Compare with the definition, within the rounding that a perturbation shows or `min_tolerance`."""
    skipped_case = None
    for inputs, causal in product(trials, causal_modes(mechanism)):
        reference = call_definition(mechanism, *inputs, causal=causal)
        if not bool(reference.isfinite().all()):
            skipped_case = Skipped(f"its definition does not support {noun}")
            continue
        # `sensitivity` of a mechanism is stated for positive tokens. Here it has to be measured as well.
        change = call_definition(mechanism, *perturb(inputs, PERTURBATION), causal=causal) - reference
        actual = call_fast(mechanism, *inputs, causal=causal)
        factor = change.abs().max().item() / (PERTURBATION * largest_size(reference))
        factor = max(factor, mechanism.sensitivity(inputs.q, inputs.k, causal))
        if not factor <= MAX_MAGNIFICATION:
            skipped_case = Skipped(f"it magnifies rounding {factor:.2g} times on {noun}")
            continue
        tolerance = max(min_tolerance, rounding_bound(inputs.q.dtype) * max(1.0, 16 * factor))
        message = f"the fast form differs from the definition on {noun}"
        message = f"{message} ({inputs.q.shape[-2]} tokens, causal={causal})"
        require_close(actual, reference, tolerance, message)
    if skipped_case is not None:
        raise skipped_case


@check("definition")
def lengths(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition on 3 to 1030 tokens, at and around the sizes of blocks."""
    shape = fit_narrow(mechanism)
    for causal, inputs, tolerance in draw_trials(mechanism, LONG_LENGTHS, (torch.float64,), shape):
        with torch.no_grad():
            require_definition(mechanism, causal, inputs, tolerance, f"{inputs.q.shape[-2]} tokens")


@check("definition")
def widths(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition for tokens of width 4 to 128."""
    if mechanism.fixed_width is not None:
        raise Skipped(f"it accepts only tokens of width {mechanism.fixed_width}")
    for (width, features), causal in product(WIDTHS, causal_modes(mechanism)):
        shape = fit_shape(mechanism, 1, 1, width, features)
        inputs, tolerance = draw_trial(mechanism, causal, LENGTHS[-1], shape=shape)
        require_definition(mechanism, causal, inputs, tolerance, f"width {width}")


@check("lengths", "widths")
def cross(mechanism: Mechanism) -> None:
    """The fast form agrees with the definition for more or fewer queries than keys, if supported."""
    if mechanism.causality is Causality.ALWAYS:
        raise Skipped("it is always causal, so there is one query for each key")
    for queries, keys in CROSS_LENGTHS:
        inputs, tolerance = draw_trial(mechanism, False, queries, keys)
        try:
            reference = call_definition(mechanism, *inputs)
        except refusal_types(mechanism) as refusal:
            raise Skipped(f"it refuses {queries} queries on {keys} keys: {one_line(refusal, 90)}") from None
        actual = call_fast(mechanism, *inputs)
        message = f"the fast form differs from the definition ({queries} queries, {keys} keys)"
        if isinstance(mechanism, CustomMechanism):
            message = f"{queries} queries on {keys} keys"
            # A query that sees no key has no output: with its own masks, a callable may return NaN there.
            empty = ~reference.isfinite().any(-1, keepdim=True)
            if not bool(empty.all()):
                actual, reference = actual.masked_fill(empty, 0), reference.masked_fill(empty, 0)
        require_close(actual, reference, tolerance, message)


@check()
def layout(mechanism: Mechanism) -> None:
    """Strided, transposed and expanded tokens give the same result as contiguous ones."""
    for causal in causal_modes(mechanism):
        usual, tolerance = draw_trial(mechanism, causal)
        for name, change_layout in LAYOUTS.items():
            inputs = usual.map(change_layout)
            reference = call_fast(mechanism, *inputs.map(torch.Tensor.contiguous), causal=causal)
            message = f"{name} tokens give a different result than contiguous ones (causal={causal})"
            message = f"{message}; it assumes contiguous memory, so call contiguous() first"
            require_close(call_fast(mechanism, *inputs, causal=causal), reference, tolerance, message)
