"""Earlier results do not depend on later tokens, and `causal` is refused where it has no meaning."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import FORMS, call_fast
from separatrix.contract.comparisons import largest_size, locate_largest, require_close, require_finite, rounding_bound
from separatrix.contract.inputs import LENGTH, Tokens, causal_modes, draw_tokens, fit_narrow, fit_shape
from separatrix.contract.trials import draw_trial
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

Cuts = tuple[tuple[int, tuple[int, ...]], ...]
"""Numbers of tokens, and positions from which on they are changed."""

CUTS: Cuts = (
    (LENGTH, tuple(range(1, LENGTH))),
    (66, tuple(range(1, 66))),
    (128, tuple(range(64, 128))),
    (257, tuple(range(127, 257))),
    (520, (288, 300, 320, 384, 400, 500, 511, 512, 513)),
    (1030, (768, 1000, 1024)),
)
"""All positions up to 256, then those at the ends of chunks."""
CUSTOM_CUTS: Cuts = (
    (520, tuple(range(260, 520, 4))),
    (1030, tuple(range(539, 1030, 41))),
    (2500, (1100, 1280, 1408, 1500, 1536, 2000, 2048, 2304)),
)
"""Further cuts for callables, which have no separate definition that the fast form is compared with."""
VALUE_LENGTH = 1030
"""The number of tokens whose values are changed one by one, each in a feature of its own."""
VERY_NEGATIVE_LOGIT = -2e4
"""Below the numbers, such as -1e4, that are used in place of minus infinity."""
MAX_SCORES = 1 << 22
"""The number of scores held at once; it limits how many cuts are tried in one call."""
PREFIXES: Cuts = (
    (LENGTH, (1, 8)),
    (66, tuple(range(1, 66))),
    (128, (66, 72, 80, 90, 96, 99, 100, 101, 112, 120)),
    (520, (100, 127, 128, 129, 192, 255, 256, 257, 300, 384, 500, 511, 512, 513)),
    (1030, (600, 768, 1000, 1024)),
    (2500, (1030, 2048)),
)
"""Numbers of tokens, and lengths of the prefixes that are attended alone."""


@check()
def causal_flag(mechanism: Mechanism) -> None:
    """A value of `causal` that the mechanism does not have is refused with a UsageError."""
    if mechanism.causality is Causality.EITHER:
        raise Skipped("it supports causal=True and causal=False")
    wrong = mechanism.causality is Causality.NEVER
    inputs = draw_tokens(4, shape=fit_shape(mechanism))
    for form, call in FORMS.items():
        try:
            call(mechanism, *inputs, causal=wrong)
        except UsageError:
            continue
        raise Broken(
            f"the {form} accepted causal={wrong} although its causality is {mechanism.causality.name}: "
            f"{mechanism.causality.value}; raise a UsageError"
        )


@check("batch_independence", "causal_flag")
def causality(mechanism: Mechanism) -> None:
    """With causal=True, changing later tokens changes no earlier result, at all positions up to 256."""
    _skip_unless_causal(mechanism)
    is_custom = isinstance(mechanism, CustomMechanism)
    for length, cuts in (*CUTS, *CUSTOM_CUTS) if is_custom else CUTS:
        _require_causal_at(mechanism, length, cuts, torch.float64)
    if is_custom:
        _require_causal_values(mechanism)
    _require_causal_on_negative_logits(mechanism)
    try:
        for length, cuts in CUTS[:2]:
            _require_causal_at(mechanism, length, cuts, torch.float32)
    except Skipped:  # rounding hides it in this format, but not in float64
        return


def _require_causal_on_negative_logits(mechanism: Mechanism) -> None:
    """Raise Broken if later tokens become visible where all visible logits are very negative.

    A mask that adds a finite number instead of minus infinity fails here.
    """
    (q, k, v), tolerance = draw_trial(mechanism, True, shape=fit_narrow(mechanism))
    inputs = Tokens(q * (VERY_NEGATIVE_LOGIT / (q @ k.mT).min().item()), k, v)
    before = call_fast(mechanism, *inputs, causal=True)
    if bool(before.isfinite().all()):
        # Rounding of a logit is relative to its size, and exp turns it into a relative error of the weight.
        factor = -VERY_NEGATIVE_LOGIT * max(1.0, mechanism.sensitivity(inputs.q, k, True))
        _require_causal(mechanism, inputs, before, (1, LENGTH // 2), factor * tolerance)


def _require_causal_values(mechanism: Mechanism) -> None:
    """Raise Broken if the value of any token changes an earlier result; each is changed in its own feature.

    One call tests all positions. It requires that features are independent, and as many as tokens.
    """
    (q, k, v), tolerance = draw_trial(mechanism, True, VALUE_LENGTH, shape=fit_narrow(mechanism))
    value, changed_values = v[..., :1], v[..., :1] + torch.eye(VALUE_LENGTH, dtype=v.dtype)
    try:
        with torch.no_grad():
            few = Tokens(q, k, v).rows(slice(LENGTH))
            first, second = (
                call_fast(mechanism, few.q, few.k, torch.cat([few.v, other], dim=-1), causal=True)
                for other in (few.q, few.k)
            )
            width = v.shape[-1]
            if not observed.is_close(first[..., :width], second[..., :width]):
                return
            out = call_fast(mechanism, q, k, torch.cat([value, changed_values], dim=-1), causal=True)
    except Exception:  # a user's mechanism may refuse that many features in any way
        return
    gap = (out[..., 1:] - out[..., :1]).abs().triu(1)
    if gap.max().item() > tolerance * largest_size(out):
        row = int(torch.unravel_index(gap.argmax(), gap.shape)[-2])
        before = call_fast(mechanism, q, k, v, causal=True)
        _require_causal(mechanism, Tokens(q, k, v), before, (row + 1,), tolerance)


def _require_causal_at(mechanism: Mechanism, length: int, cuts: tuple[int, ...], dtype: torch.dtype) -> None:
    inputs, tolerance = draw_trial(mechanism, True, length, dtype=dtype, shape=fit_narrow(mechanism))
    before = call_fast(mechanism, *inputs, causal=True)
    batch = max(1, MAX_SCORES // (length * length))
    for start in range(0, len(cuts), batch):
        _require_causal(mechanism, inputs, before, cuts[start : start + batch], tolerance)


def _require_causal(
    mechanism: Mechanism, inputs: Tokens, before: Tensor, cuts: tuple[int, ...], tolerance: float, letters: str = "qkvx"
) -> None:
    """Change the tokens from each cut on, one cut per batch element; raise Broken if earlier results change.

    `letters` says which inputs are changed: q, k, v, and x for the random extras.
    """
    length = inputs.q.shape[-2]
    # All cuts in one batch: batch independence was checked before, and one call is faster than many.
    later = torch.arange(length) >= torch.tensor(cuts)[:, None]
    after = _call_changed(mechanism, inputs, later, letters)
    hidden = later[:, None, :, None]
    actual, reference = after.masked_fill(hidden, 0), before.masked_fill(hidden, 0)
    try:
        require_close(actual, reference, tolerance, "")
    except Broken:
        # The unchanged tokens again, in a batch of the same size: its rounding may differ from that of one.
        repeated = inputs.map(lambda x: x.repeat(len(cuts), 1, 1, 1))
        reference = call_fast(mechanism, *repeated, causal=True).masked_fill(hidden, 0)
        for i, cut in enumerate(cuts):
            names = ["extras" if x == "x" else x for x in letters if x != "x" or mechanism.extras]
            change = f"changing {', '.join(names)} from token {cut} on changed earlier results ({length} tokens)"
            try:
                require_close(actual[i : i + 1], reference[i : i + 1], tolerance, change)
            except Broken as fault:
                for letter in letters if len(letters) > 1 else ():  # name the first input that suffices
                    _require_causal(mechanism, inputs, before, (cut,), tolerance, letter)
                raise type(fault)(f"not causal: {_explain_leak(mechanism, inputs, tolerance)}; {fault}") from None


def _call_changed(mechanism: Mechanism, inputs: Tokens, changed: Tensor, letters: str) -> Tensor:
    """Call the causal fast form with the tokens changed where `changed` (batch, tokens) is true."""
    offset = changed[:, None, :, None]
    values = Tokens(
        *(
            x + offset.to(x.dtype) if letter in letters else x.expand(len(changed), -1, -1, -1)
            for letter, x in zip("qkv", inputs, strict=True)
        )
    )
    return call_fast(mechanism, *values, causal=True, changed=changed if "x" in letters else None)


def _explain_leak(mechanism: Mechanism, inputs: Tokens, tolerance: float) -> str:
    """Return which later tokens the first ones see, and the probable cause."""
    few = inputs.rows(slice(LENGTH))
    length = few.q.shape[-2]
    try:
        with torch.no_grad():
            changes = _call_changed(mechanism, few, torch.eye(length, dtype=torch.bool), "qkvx")
            usual = call_fast(mechanism, *few.map(lambda x: x.repeat(length, 1, 1, 1)), causal=True)
    except Exception:  # a user's mechanism may raise anything; the numbers are reported in any case
        return "results depend on later tokens"
    limit = tolerance * largest_size(usual)
    # Element j of the batch has token j changed, so that its row i shows whether token i sees token j.
    sees = ((changes - usual).abs().amax((1, 3)) > limit).T.triu(1)  # (token, later token)
    leaks = sees.nonzero().tolist()
    if not leaks:
        return f"results depend on later tokens, though not among the first {length}: check the ends of blocks"
    if len(leaks) == length * (length - 1) // 2:
        return "every token sees all later ones. No causal mask is applied"
    reach = max(later - token for token, later in leaks)
    if all(bool(sees.diagonal(offset).all()) for offset in range(1, reach + 1)):
        if reach == 1:
            return "token 0 sees token 1 but no later one. The mask is off by one"
        return f"token 0 sees tokens 1 to {reach} but no later one. The mask is off by {reach}"
    token, later = leaks[0]
    return f"token {token} sees token {later}"


@check("causality")
def causality_of_gradients(mechanism: Mechanism) -> None:
    """With causal=True, the gradient of a result with respect to later tokens is zero."""
    _skip_unless_causal(mechanism)
    for length, rows in ((9, range(8)), (66, (0, 15, 31, 32, 63, 64)), (257, (99, 127, 128, 255))):
        inputs = draw_tokens(length, shape=fit_shape(mechanism, 1, 2, 4, 3)).map(torch.Tensor.requires_grad_)
        out = call_fast(mechanism, *inputs, causal=True)
        if not out.requires_grad:
            raise Skipped("no gradient reaches q, k or v")
        require_finite(out, "ordinary tokens")
        # Equal weights could cancel: those of a normalised row have a sum with no gradient.
        weights = torch.linspace(0.5, 1.5, out.shape[-1], dtype=out.dtype)
        for row in rows:
            _require_causal_gradient((out[..., row, :] * weights).sum(), row, inputs)


def _require_causal_gradient(result: Tensor, row: int, inputs: Tokens) -> None:
    gradients = torch.autograd.grad(result, inputs, retain_graph=True, allow_unused=True)
    for letter, gradient in zip("qkv", gradients, strict=True):
        if gradient is None:
            continue
        size = gradient.abs()
        limit = rounding_bound(gradient.dtype) * max(1.0, size.max().item())
        size[..., : row + 1, :] = 0
        if not size.max().item() <= limit:
            raise Broken(
                f"result {row} has the gradient {size.max().item():.3g} with respect to {letter} at "
                f"{locate_largest(size)}, which comes later; allowed {limit:.1g}"
            )


@check("normalised")
def prefix(mechanism: Mechanism) -> None:
    """With causal=True, the first tokens give the same results alone as before other tokens."""
    _skip_unless_causal(mechanism)
    if not mechanism.length_free:
        raise Skipped("it declares that causal results depend on the number of tokens that follow")
    for length, prefix_lengths in PREFIXES:
        inputs, tolerance = draw_trial(mechanism, True, length, shape=fit_narrow(mechanism))
        out = call_fast(mechanism, *inputs, causal=True)
        for prefix_length in prefix_lengths:
            alone = call_fast(mechanism, *inputs.rows(slice(prefix_length)), causal=True)
            message = f"the first {prefix_length} of {length} tokens give different results alone"
            message = f"{message}; if that is intended, declare length_free = False"
            require_close(out[..., :prefix_length, :], alone, tolerance, message)


def _skip_unless_causal(mechanism: Mechanism) -> None:
    if True not in causal_modes(mechanism):
        raise Skipped("it has no causal form")
