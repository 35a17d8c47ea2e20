"""The past does not depend on the future, and `causal` is refused where it has no meaning."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import FORMS, fast
from separatrix.contract.inputs import (
    LENGTH,
    few,
    modes,
    place_of,
    require_equal,
    require_finite,
    rounding,
    sizes,
    tokens,
    trial,
)
from separatrix.core.parameters import UsageError
from separatrix.mechanisms import Causality, Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

CUTS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (LENGTH, tuple(range(1, LENGTH))),
    (66, tuple(range(1, 66))),
    (128, tuple(range(64, 128))),
    (257, tuple(range(127, 257))),
    (520, (288, 300, 320, 384, 400, 500, 511, 512, 513)),
    (1030, (768, 1000, 1024)),
)
"""Numbers of tokens, and the places before which the past ends: all up to 256, then where chunks end."""
MORE_CUTS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (520, tuple(range(260, 520, 4))),
    (1030, tuple(range(539, 1030, 41))),
    (2500, (1100, 1280, 1408, 1500, 1536, 2000, 2048, 2304)),
)
"""The same for callables, which have no definition beside them to be compared with."""
ALL_PLACES = 1030
"""Of so many tokens each one's value is changed, where features are nothing to each other."""
DEEP = -2e4
"""Logits below those that are used in the place of minus infinity."""
AT_ONCE = 1 << 22
"""Scores held at once, of all the cuts that are tried together."""
BEGINNINGS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (LENGTH, (1, 8)),
    (66, tuple(range(1, 66))),
    (128, (66, 72, 80, 90, 96, 99, 100, 101, 112, 120)),
    (520, (100, 127, 128, 129, 192, 255, 256, 257, 300, 384, 500, 511, 512, 513)),
    (1030, (600, 768, 1000, 1024)),
    (2500, (1030, 2048)),
)
"""Numbers of tokens, and how many of them are tried alone."""


@check()
def causal_flag(mechanism: Mechanism) -> None:
    """A value of `causal` that the mechanism does not have is refused with a UsageError."""
    if mechanism.causality is Causality.EITHER:
        raise Skipped("it takes causal=True and causal=False")
    wrong = mechanism.causality is Causality.NEVER
    q, k, v = tokens(4, shape=sizes(mechanism))
    for form, attend in FORMS.items():
        try:
            attend(mechanism, q, k, v, causal=wrong)
        except UsageError:
            continue
        raise Broken(f"the {form} took causal={wrong} without a UsageError, but: {mechanism.causality.value}")


@check("batch_independence", "causal_flag")
def causality(mechanism: Mechanism) -> None:
    """With causal=True, changing future tokens changes no earlier result, at every place up to 256 and on."""
    _needs_causal(mechanism)
    for length, places in (*CUTS, *MORE_CUTS) if isinstance(mechanism, CustomMechanism) else CUTS:
        _require_no_leak(mechanism, length, places, torch.float64)
    if isinstance(mechanism, CustomMechanism):
        _require_no_value_leaks(mechanism)
    _require_no_leak_far_below(mechanism)
    try:
        for length, places in CUTS[:2]:
            _require_no_leak(mechanism, length, places, torch.float32)
    except Skipped:  # rounding hides it in this format, and float64 was looked at
        return


def _require_no_leak_far_below(mechanism: Mechanism) -> None:
    """The future is out of sight also where the logits of all that is seen are very negative."""
    q, k, v, bound = trial(mechanism, True, shape=few(mechanism))
    q = q * (DEEP / (q @ k.mT).min().item())
    before = fast(mechanism, q, k, v, causal=True)
    if bool(before.isfinite().all()):
        size = -DEEP * max(1.0, mechanism.sensitivity(q, k, True))
        _require_past(mechanism, (q, k, v), before, (1, LENGTH // 2), size * bound)


def _require_no_value_leaks(mechanism: Mechanism) -> None:
    """No value changes an earlier result, at any place: each is changed in a feature of its own.

    Asked where features are nothing to each other and there may be as many as tokens.
    """
    q, k, v, bound = trial(mechanism, True, ALL_PLACES, shape=few(mechanism))
    one, each = v[..., :1], v[..., :1] + torch.eye(ALL_PLACES, dtype=v.dtype)
    try:
        with torch.no_grad():
            small = [x[..., :LENGTH, :] for x in (q, k, v)]
            alone, beside = (
                fast(mechanism, small[0], small[1], torch.cat([small[2], other], dim=-1), causal=True)
                for other in (small[0], small[1])
            )
            width = v.shape[-1]
            if not observed.alike(alone[..., :width], beside[..., :width]):
                return
            found = fast(mechanism, q, k, torch.cat([one, each], dim=-1), causal=True)
    except Exception:  # a stranger may refuse so many features in any way
        return
    gap = (found[..., 1:] - found[..., :1]).abs().triu(1)
    if gap.max().item() > bound * max(1.0, found.abs().max().item()):
        row = int(torch.unravel_index(gap.argmax(), gap.shape)[-2])
        before = fast(mechanism, q, k, v, causal=True)
        _require_past(mechanism, (q, k, v), before, (row + 1,), bound)


def _require_no_leak(mechanism: Mechanism, length: int, places: tuple[int, ...], dtype: torch.dtype) -> None:
    q, k, v, bound = trial(mechanism, True, length, dtype=dtype, shape=few(mechanism))
    before = fast(mechanism, q, k, v, causal=True)
    together = max(1, AT_ONCE // (length * length))
    for start in range(0, len(places), together):
        _require_past(mechanism, (q, k, v), before, places[start : start + together], bound)


def _require_past(
    mechanism: Mechanism,
    inputs: tuple[Tensor, Tensor, Tensor],
    before: Tensor,
    places: tuple[int, ...],
    bound: float,
    changed: str = "qkvx",
) -> None:
    """Change what comes from each place on, one place in each element of a batch; earlier results stay.

    `changed` says what: q, k, v, and x for the drawn extras.
    """
    length = inputs[0].shape[-2]
    later = torch.arange(length) >= torch.tensor(places)[:, None]
    moved = [
        x + later[:, None, :, None].to(x.dtype) if letter in changed else x.expand(len(places), -1, -1, -1)
        for letter, x in zip("qkv", inputs, strict=True)
    ]
    others = later if "x" in changed else None
    after = fast(mechanism, moved[0], moved[1], moved[2], causal=True, changed=others)
    past = after.masked_fill(later[:, None, :, None], 0)
    expected = before.masked_fill(later[:, None, :, None], 0)
    named = changed.replace("x", " and extras" if mechanism.extras else "") if len(changed) > 1 else changed
    named = "extras" if changed == "x" else named
    what = f"the past sees the future: {named} from token {{}} on changed earlier results ({length} tokens)"
    try:
        require_equal(past, expected, bound, what)
    except Broken:
        q, k, v = (x.repeat(len(places), 1, 1, 1) for x in inputs)
        expected = fast(mechanism, q, k, v, causal=True).masked_fill(later[:, None, :, None], 0)
        for i, place in enumerate(places):
            now, then = past[i : i + 1], expected[i : i + 1]
            try:
                require_equal(now, then, bound, what.format(place))
            except Broken:
                if len(changed) > 1:
                    for letter in changed:
                        _require_past(mechanism, inputs, before, (place,), bound, letter)
                raise


@check("causality")
def causality_of_gradients(mechanism: Mechanism) -> None:
    """With causal=True, the gradient of a result with respect to later tokens is zero."""
    _needs_causal(mechanism)
    for length, rows in ((9, range(8)), (66, (0, 15, 31, 32, 63, 64)), (257, (99, 127, 128, 255))):
        _require_no_slope(mechanism, length, rows)


def _require_no_slope(mechanism: Mechanism, length: int, rows: range | tuple[int, ...]) -> None:
    q, k, v = (x.requires_grad_() for x in tokens(length, shape=sizes(mechanism, 1, 2, 4, 3)))
    out = fast(mechanism, q, k, v, causal=True)
    if not out.requires_grad:
        raise Skipped("no gradient flows at all")
    require_finite(out, "ordinary tokens")
    weights = torch.linspace(0.5, 1.5, out.shape[-1], dtype=out.dtype)
    for i in rows:
        row = (out[..., i, :] * weights).sum()
        slopes = torch.autograd.grad(row, (q, k, v), retain_graph=True, allow_unused=True)
        for name, slope in zip("qkv", slopes, strict=True):
            if slope is None:
                continue
            later = slope.abs()
            allowed = rounding(q.dtype) * max(1.0, later.max().item())
            later[..., : i + 1, :] = 0
            if not later.max().item() <= allowed:
                raise Broken(
                    f"result {i} has the gradient {later.max().item():.3g} with respect to {name} at "
                    f"{place_of(later)}, which comes later; allowed {allowed:.1g}"
                )


@check("normalised")
def prefix(mechanism: Mechanism) -> None:
    """With causal=True, the first tokens give alone what they give when others follow."""
    _needs_causal(mechanism)
    if not mechanism.length_free:
        raise Skipped("it says that causal results depend on how many tokens follow")
    for length, places in BEGINNINGS:
        q, k, v, bound = trial(mechanism, True, length, shape=few(mechanism))
        whole = fast(mechanism, q, k, v, causal=True)
        for place in places:
            alone = fast(mechanism, q[..., :place, :], k[..., :place, :], v[..., :place, :], causal=True)
            what = f"the first {place} of {length} tokens give another result than alone"
            what = f"{what}; if that is meant, say length_free = False"
            require_equal(whole[..., :place, :], alone, bound, what)


def _needs_causal(mechanism: Mechanism) -> None:
    if True not in modes(mechanism):
        raise Skipped("it has no causal form")
