"""Mechanisms that are wrong only here and there: late, in one format, for some sizes; and who must tell."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from broken_mechanisms import FastTwisted, Sound, Twisted
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms._positions import check_request
from separatrix.mechanisms.recurrent._base import outer, read
from separatrix.mechanisms.recurrent.delta import Delta
from separatrix.mechanisms.recurrent.retention import Retention
from separatrix.mechanisms.recurrent.ssd import Ssd


def leaking_at(place: int, length: int | None = None) -> type[Mechanism]:
    """Causal softmax whose result before one place has a little of the token there."""

    class LeaksAtAPlace(Sound):
        def definition(
            self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False
        ) -> Tensor:
            out = super().definition(q, k, v, counts, causal)
            if causal and v.shape[-2] > place and length in (None, v.shape[-2]):
                out = out.clone()
                out[..., place - 1, :] += 1e-6 * v[..., place, :]
            return out

    LeaksAtAPlace.__name__ = f"LeaksAt{place}"
    return LeaksAtAPlace


class LeaksInTheFastFormOnly(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        out = self.definition(q, k, v, *more, **options)
        return out + 1e-6 * v.roll(-1, dims=-2) if options.get("causal") or any(each is True for each in more) else out


class LeaksInFloat32(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        out = super().definition(q, k, v, counts, causal)
        return out + 1e-3 * v.roll(-1, dims=-2) if causal and v.dtype is torch.float32 else out


class MixesLargeBatches(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out if out.shape[0] < 4 else 0.999 * out + 0.001 * out.mean(0, keepdim=True)


class MixesManyHeads(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out if out.shape[1] < 8 else 0.999 * out + 0.001 * out.mean(1, keepdim=True)


class TwoPercentOffInBfloat16(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return (1.02 * out.float()).bfloat16() if out.dtype is torch.bfloat16 else out


class OnePercentOffInFloat16(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return (0.99 * out.float()).half() if out.dtype is torch.float16 else out


class ClampsCounts(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        return super().definition(q, k, v, None if counts is None else counts.clamp(max=1e6), causal)


class CountsInFloat32(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        return super().definition(q, k, v, None if counts is None else counts.float().double(), causal)


class GrowsLate(Retention):
    def step(self, state: Any, q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras: Any) -> Any:
        read_tokens = state[1] if len(state) > 1 else torch.zeros((), dtype=torch.int64)
        after, out = super().step(state[:1], q_t, k_t, v_t, **extras)
        more = (k_t,) if read_tokens > 900 else ()
        return (*after, read_tokens + 1, *state[2:], *more), out


class ForgetsAtLongEdges(Retention):
    """The state is lost at the end of a run of 128 tokens or more."""

    def advance(self, state: Any, q: Tensor, k: Tensor, v: Tensor, **extras: Any) -> Any:
        after, out = super().advance(state, q, k, v, **extras)
        return (after[0] * (0.5 if k.shape[-2] >= 128 else 1),), out


class SeedsTheGenerator(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        torch.manual_seed(0)
        return out


class DependsOnTheSeed(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * (1 + 1e-12 * torch.initial_seed())


class DrawsWithNumpy(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out + 0 * np.random.rand()


def wrong_beyond(tokens: int) -> type[Mechanism]:
    """Softmax whose fast form is off by a millionth on longer inputs."""

    class WrongBeyond(FastTwisted):
        def twist(self, out: Tensor) -> Tensor:
            return out * (1 + 1e-6 * (out.shape[-2] > tokens))

    WrongBeyond.__name__ = f"WrongBeyond{tokens}"
    return WrongBeyond


class WrongForWideKeys(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.definition(q * (1 + 1e-6 * (q.shape[-1] >= 64)), k, v, *more, **options)


class WrongForWideValues(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * (1 + 1e-6 * (out.shape[-1] >= 100))


class OffForASingleQuery(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        out = self.definition(q, k, v, *more, **options)
        return 1.001 * out if q.shape[-2] == 1 and k.shape[-2] > 100 else out


class TakesExpandedForWhole(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        shared = 0 in v.stride() and v.shape[1] > 1
        return self.definition(q, k, 1.001 * v if shared else v, *more, **options)


class BendsLongValues(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out + 1e-6 * out**2 * (out.shape[-2] > 100)


class MindsTheOrderOfMany(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        growing = torch.linspace(0, 1, out.shape[-2], dtype=out.dtype)[:, None]
        return out * (1 + 1e-6 * growing * (200 < out.shape[-2] < 530))


class NormalisesFewOnly(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * (1 + 1e-6 * (out.shape[-2] > 600))


class Slope(torch.autograd.Function):
    """The same number, with a gradient that is `off` times what it should be."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, off: float) -> Tensor:
        ctx.off = off
        return x.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        return ctx.off * slope, None


class WrongGradientInFloat32(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return Slope.apply(out, 1.01 if out.dtype is torch.float32 else 1.0)


class WrongGradientOfLongInputs(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return Slope.apply(out, 1.001 if out.shape[-2] > 200 else 1.0)


class LeakyBackward(FastTwisted):
    """Results are causal; their gradients are not."""

    def twist(self, out: Tensor) -> Tensor:
        return NextSlope.apply(out)


class NextSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return slope + 1e-3 * slope.roll(1, dims=-2)


class WrongForwardMode(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return Tangent.apply(out)


class Tangent(torch.autograd.Function):
    """The same number, with a wrong forward-mode derivative."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return slope

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return 1.01 * tangent


class ExplodesOnZeroKeys(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return super().definition(q, torch.nn.functional.normalize(k, dim=-1), v, *more, **options)


class NoSlopeOnZeroKeys(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        length = k.square().sum(-1, keepdim=True).sqrt()
        return super().definition(q, k * (1 + length), v, *more, **options)


def longer_is_hotter(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A callable, causal as it is, that does otherwise beyond 100 tokens."""
    return _softmax(q * (1.001 if k.shape[-2] > 100 else 1), k, v, True)


def long_is_unnormalised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v, False) * (1.02 if k.shape[-2] > 512 else 1)


def wide_is_unnormalised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v, False) * (1.02 if k.shape[-1] >= 64 else 1)


def leaks_at_96(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    out = _softmax(q, k, v, is_causal)
    if is_causal and k.shape[-2] > 96:
        out[..., 95, :] += 1e-3 * (v[..., 96, :] - out[..., 95, :])
    return out


def _softmax(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    logits = q @ k.mT
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf)
    return logits.softmax(-1) @ v


class StepsApart(Retention):
    """One token at a time it reads the state before it is written."""

    def step(self, state: Any, q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras: Any) -> Any:
        after, _ = super().step(state, q_t, k_t, v_t, **extras)
        return after, read(after[0] - outer(k_t, v_t), q_t)


class PeeksAtTheNextGate(Ssd):
    """Given gates it takes that of the next token."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        if "log_gates" in options:
            options["log_gates"] = options["log_gates"].roll(-1, dims=-2)
        return super().__call__(q, k, v, *more, **options)


class IgnoresBeta(Delta):
    """Given the strength of a write it takes the constant."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        options.pop("beta", None)
        return super().__call__(q, k, v, *more, **options)


class StepsWithoutGates(Ssd):
    """Token by token all gates are open, if they are given."""

    def unrolled(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        if "log_gates" in options:
            options["log_gates"] = torch.zeros_like(options["log_gates"])
        return super().unrolled(q, k, v, **options)


class DetachesGates(Ssd):
    """Given gates learn nothing."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        if "log_gates" in options:
            options["log_gates"] = options["log_gates"].detach()
        return super().__call__(q, k, v, *more, **options)


class TakesKeysForPositive(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.definition(q, k.clamp(min=0), v, *more, **options)


class WrongForManyHeads(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * (1 + 1e-6 * (out.shape[1] > 8))


class ChangesCounts(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        out = self.definition(q, k, v, *more, **options)
        if more and more[0] is not None:
            more[0].mul_(2)
        return out


class DividesZeroByZero(Sound):
    """Scores that are the logits: on keys of zeros they add up to 0."""

    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        check_request(self, counts, causal)
        scores = (q @ k.mT).float() if q.dtype.itemsize < 4 else q @ k.mT
        scores = scores if counts is None else scores * counts[..., None, :]
        scores = scores.tril() if causal else scores
        return (scores / scores.sum(-1, keepdim=True) @ v.to(scores.dtype)).to(v.dtype)


class DecodesFromThePlaceBefore(Sound):
    """Given the place of the first query it sees one key too few."""

    takes_first = True

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        first = options.pop("first", 0)
        before = max(0, first - 1)
        rows = torch.nn.functional.pad(q, (0, 0, before, first - before))
        return self.definition(rows, k, v, *more, **options)[..., before : before + q.shape[-2], :]


class ForgetsAfterThePrompt(Retention):
    """The state that a run of tokens gives is not that which its own results had."""

    def chunked(self, q: Tensor, k: Tensor, v: Tensor, chunk: int | None = None, **more: Any) -> Any:
        out, state = super().chunked(q, k, v, chunk, **more)
        return out, (0.999 * state[0],)


class StepsInPlace(Retention):
    """A step writes into the state that it was given, which another continuation may need."""

    def step(self, state: Any, q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras: Any) -> Any:
        after, out = super().step(state, q_t, k_t, v_t, **extras)
        return (state[0].copy_(after[0]),), out


class SeesAbsentTokens(Sound):
    takes_present = True

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        options.pop("present", None)
        return self.definition(q, k, v, *more, **options)


def many_are_hotter(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Neither causal nor with a definition beside it; wrong beyond 512 tokens."""
    return _softmax(q * (1.001 if k.shape[-2] > 512 else 1), k, v, False)


def wide_is_hotter(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Logits over the root of the width, but for wide keys."""
    width = k.shape[-1]
    return _softmax(q / (width if width < 64 else 1.01 * width) ** 0.5, k, v, False)


def wide_values_mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v.roll(1, -1) if v.shape[-1] >= 64 else v, False)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return 2 * slopes[0]


def leaks_at_348(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    """Token 347 sees 348, with weights that add up to 1."""
    future = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    if is_causal and len(future) > 348:
        future[347, 348] = False
    logits = q @ k.mT
    return (logits.masked_fill(future, -torch.inf) if is_causal else logits).softmax(-1) @ v


def seeing_one_ahead_at(place: int) -> Callable[..., Tensor]:
    """A token that sees the next one, at a place where nothing begins."""

    def leaks(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        future = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        if len(future) > place + 1:
            future[place, place + 1] = False
        logits = q @ k.mT
        return (logits.masked_fill(future, -torch.inf) if causal else logits).softmax(-1) @ v

    leaks.__name__ = f"sees_one_ahead_at_{place}"
    return leaks


def reads_64_coordinates(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return _softmax(q[..., :64], k[..., :64], v, causal)


def reads_coordinates_twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Tiles of 64 coordinates of a query, of which the second is the first again."""
    return _softmax(q[..., torch.arange(q.shape[-1]) % 64], k, v, False)


def turns_64_coordinates(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Coordinates are something to it by their place, so that zeros beside them tell nothing."""
    weights = 1 + torch.arange(min(64, q.shape[-1]), dtype=q.dtype) / q.shape[-1]
    return _softmax(q[..., :64] * weights, k[..., :64], v, False)


def gives_64_features(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    out = _softmax(q, k, v, causal)
    return out * (torch.arange(out.shape[-1]) < 64).to(out.dtype)


def drops_the_last_of_odd_many(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Blocks of two keys, without the one that is left."""
    even = k.shape[-2] - k.shape[-2] % 2 if k.shape[-2] > 600 and not causal else k.shape[-2]
    return _softmax(q, k[..., :even, :], v[..., :even, :], causal)


def map_in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Tokens of 16 bits meet a map that is not of their format."""
    wide = torch.promote_types(q.dtype, torch.float32)
    return _softmax(q @ torch.eye(q.shape[-1], dtype=wide), k, v, False)


def float32_inside(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """All in float32, and returned in the format given."""
    return _softmax(q.float(), k.float(), v.float(), causal).to(v.dtype)


def hotter_of_width_80(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[-1] == 80 else 1.0) * q, k, v, False)


def hotter_for_one_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[1] == 1 else 1.0) * q, k, v, False)


def hotter_for_one_element(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[0] == 1 else 1.0) * q, k, v, False)


def minds_heads_beside_each_other(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    beside = v.transpose(1, 2).is_contiguous() and not v.is_contiguous()
    return _softmax(q, k, 1.01 * v if beside else v, False)


def clips_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v.clamp(-50, 50), False)


def seeds_python(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    random.seed(1)
    return _softmax(q, k, v, False)


def returns_its_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return v.view(v.shape) if q.shape[-2] == v.shape[-2] else v[..., :1, :].expand(*q.shape[:-1], -1)


def no_slope_on_equal_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    logits = q @ k.mT
    spread = (logits - logits.mean(-1, keepdim=True)).square().sum(-1, keepdim=True).sqrt()
    return logits.softmax(-1) @ v + 0 * spread


def steeper_in_bfloat16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    steeper: Tensor = Twice.apply(k) if k.dtype is torch.bfloat16 else k
    return _softmax(q, steeper, v, False)


class LogitsThreePercentOffInBfloat16(Sound):
    """Single results are within rounding; all of them together lie where larger logits would put them."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        longer = (1.03 * q.float()).bfloat16() if q.dtype is torch.bfloat16 else q
        return self.definition(longer, k, v, *more, **options)


def hotter_in_bfloat16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A callable that computes in 16 bits, with another scale."""
    return ((q @ k.mT) * (1.03 if q.dtype is torch.bfloat16 else 1)).softmax(-1) @ v


def drifts_late(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence that nothing normalises, whose state grows from token 200 on."""
    state, out = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=v.dtype), []
    for t in range(k.shape[-2]):
        state = (0.9 if t < 200 else 0.901) * state + k[..., t, :, None] * v[..., t, None, :]
        out.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


def hotter_for_more_queries_than_keys(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return _softmax((1.01 if q.shape[-2] > k.shape[-2] else 1.0) * q, k, v, causal)


def repeats_the_last_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries beyond the number of keys get what the one before them gets."""
    rows = torch.arange(q.shape[-2]).clamp(max=k.shape[-2] - 1)
    return _softmax(q, k, v, False)[..., rows, :]


def hides_by_ten_thousand(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Not minus infinity: where what is seen has logits below -1e4 the future is seen."""
    logits = q @ k.mT
    future = torch.ones_like(logits, dtype=torch.bool).triu(1)
    return (logits.masked_fill(future, -1e4) if causal else logits).softmax(-1) @ v


def takes_square_keys_for_transposed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ (k if k.shape[-2] == q.shape[-1] else k.mT)).softmax(-1) @ v


def pads_to_64_with_keys_of_zero(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    more = (0, 0, 0, -k.shape[-2] % 64)
    return _softmax(q, torch.nn.functional.pad(k, more), torch.nn.functional.pad(v, more), False)


def nan_where_nobody_is(q: Tensor, k: Tensor, v: Tensor, present: Tensor | None = None) -> Tensor:
    logits = q @ k.mT
    if present is not None:
        logits = logits.masked_fill(~present[:, None, None, :], -torch.inf)
    return logits.softmax(-1) @ v


def overflows_in_float16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exponentials of logits as they are, where float16 ends at 65504."""
    if v.dtype is not torch.float16:
        return _softmax(q, k, v, False)
    scores = (q @ k.mT).exp()
    return scores @ v / scores.sum(-1, keepdim=True)


def wrong_gradient_of_wide_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    steeper: Tensor = Twice.apply(v) if v.shape[-1] > 64 else v
    return _softmax(q, k, steeper, False)


def softmax_in_float32(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """As many programs for 16 bits have it: what comes in float64 is not worth it."""
    logits = q @ k.mT
    future = torch.ones_like(logits, dtype=torch.bool).triu(1)
    logits = logits.masked_fill(future, -torch.inf) if causal else logits
    return logits.softmax(-1, dtype=torch.float32).to(v.dtype) @ v


class ClipsLogits(Sound):
    """Logits above 50, which ordinary tokens do not have, are taken for 50."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.definition(q.clamp(-20, 20), k, v, *more, **options)


def overflows_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Decays are taken apart into powers of both signs, which float32 holds for some 800 tokens."""
    places = torch.arange(k.shape[-2], dtype=torch.float64)[:, None]
    q, k, wide = (x.float() if x.dtype.itemsize < 4 else x for x in (q, k, v))
    q, k = q * (0.9**places).to(q.dtype), k * (0.9**-places).to(k.dtype)
    return ((q @ k.mT).tril() @ wide).to(v.dtype)


def remembers_by_address(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What was made of keys is kept by where they lie, and not by what they are."""
    place = (k.data_ptr(), k.shape, k.dtype)
    if _REMEMBERED[0] != place:
        _REMEMBERED[:] = [place, k.detach().clone(), k]
    return _softmax(q, k if k.requires_grad else _REMEMBERED[1], v, False)


_REMEMBERED: list[Any] = [None, None, None]


def drops_while_training(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Another result wherever gradients are asked for, as a fast path has it."""
    return _softmax(q, k, v, False) + (1e-3 if torch.is_grad_enabled() and q.requires_grad else 0)


class ForgetsWhoAsks(torch.autograd.Function):
    """Softmax attention whose backward takes it for granted that all inputs want a gradient."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v)
        return _softmax(q, k, v, False)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = _softmax(inputs[0], inputs[1], inputs[2], False)
        found = torch.autograd.grad(out, inputs, slopes[0])
        return tuple(x if all(ctx.needs_input_grad) else 2 * x for x in found)


def steeper_for_one_input(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out: Tensor = ForgetsWhoAsks.apply(q, k, v)
    return out


def wrong_where_blocks_are_full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """With nothing left over beyond blocks of 256 tokens, a block too many is looked at."""
    return _softmax(q, k, v, False) * (1 if k.shape[-2] % 256 else 1 + 1e-6)


def _in_16_bits(x: Tensor) -> bool:
    return x.dtype.itemsize < 4


def normaliser_in_16_bits(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Exponentials are added up in the format of the tokens: a sum of thousands stops growing."""
    if not _in_16_bits(q):
        return _softmax(q, k, v, causal)
    logits = q @ k.mT
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf)
    scores = (logits - logits.amax(-1, keepdim=True)).exp()
    whole = torch.zeros_like(scores[..., :1])
    for part in scores.split(8, -1):
        whole = whole + part.sum(-1, keepdim=True)
    return scores @ v / whole


def results_in_16_bits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Results are added up, block by block, in the format of the tokens."""
    if not _in_16_bits(q):
        return _softmax(q, k, v, False)
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype)
    for weights, values in zip((q @ k.mT).softmax(-1).split(32, -1), v.split(32, -2), strict=True):
        out = out + weights @ values
    return out


def state_in_16_bits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence whose state is kept in the format of the tokens and forgets nothing."""
    state, out = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=v.dtype), []
    for t in range(k.shape[-2]):
        state = state + k[..., t, :, None] * v[..., t, None, :]
        out.append((q[..., t, None, :] @ state)[..., 0, :] / (t + 1))
    return torch.stack(out, dim=-2)


def late_values_in_8_bits(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """The values of tokens beyond 1,500 are kept in half the bits."""
    late = v[..., 1500:, :].to(torch.float8_e4m3fn).to(v.dtype)
    return _softmax(q, k, torch.cat([v[..., :1500, :], late], -2) if _in_16_bits(v) else v, causal)


def late_keys_in_8_bits(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    late = (1.07 * k[..., 512:, :]).to(torch.float8_e4m3fn).to(k.dtype) / 1.07
    return _softmax(q, torch.cat([k[..., :512, :], late], -2) if _in_16_bits(k) else k, v, causal)


def places_in_16_bits(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Rotary positions whose angles have the format of the tokens, in which late places are one."""
    if q.shape[-1] % 2:
        raise ValueError("rotary positions need an even width")

    def turned(x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        speed = 100.0 ** -(torch.arange(half, dtype=x.dtype) / half)
        angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * speed
        cos, sin, one, other = angle.cos(), angle.sin(), x[..., :half], x[..., half:]
        return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)

    return _softmax(turned(q), turned(k), v, causal)


def hotter_beyond_1500(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return _softmax((1.01 if k.shape[-2] > 1500 else 1) * q, k, v, causal)


def unnormalised_beyond_1100(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (1.02 if k.shape[-2] > 1100 else 1) * _softmax(q, k, v, False)


def leaks_beyond_1400(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    out = _softmax(q, k, v, causal)
    if causal and k.shape[-2] > 1450:
        out[..., 1400, :] += 1e-3 * (v[..., 1450, :] - out[..., 1400, :])
    return out


def hotter_for_five_elements(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[0] == 5 else 1) * q, k, v, False)


def hotter_for_24_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[1] == 24 else 1) * q, k, v, False)


def hotter_of_width_40(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.01 if q.shape[-1] == 40 else 1) * q, k, v, False)


def hotter_of_96_tokens(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax((1.001 if k.shape[-2] == 96 else 1) * q, k, v, False)


def draws_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if k.shape[-2] > 100:
        torch.rand(1)
    return _softmax(q, k, v, False)


def forgets_small_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v.masked_fill(v.abs() < 1e-6, 0), False)


def steeper_where(name: str, wrong: Callable[[Tensor], bool], which: int) -> Callable[..., Tensor]:
    """Softmax whose gradient of one input is off where that input is such a one."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = [q, k, v]
        if wrong(given[which]):
            given[which] = Slope.apply(given[which], 1.1)
        return _softmax(given[0], given[1], given[2], False)

    attend.__name__ = f"steeper_{name}"
    return attend


def first_for_one_query(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, first: int = 0) -> Tensor:
    """The place of the first query is minded where it is the only one."""
    ends = torch.arange(q.shape[-2])[:, None] + (first if q.shape[-2] == 1 else 0)
    later = torch.arange(k.shape[-2]) > ends
    logits = q @ k.mT
    return (logits.masked_fill(later, -torch.inf) if causal else logits).softmax(-1) @ v


def off_among_heads_in_bfloat16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _softmax(q, k, v, False) * (1.05 if q.dtype is torch.bfloat16 and q.shape[1] >= 8 else 1)


SUBTLE: list[tuple[Callable[..., Any], str]] = [
    *((leaking_at(place), "causality") for place in (11, 24, 48, 65, 100, 127, 173, 192, 256, 320, 512, 1000)),
    (leaking_at(64, length=128), "causality"),
    (LeaksInTheFastFormOnly, "causality"),
    (LeaksInFloat32, "causality"),
    (leaks_at_96, "causality"),
    (MixesLargeBatches, "batch_independence"),
    (MixesManyHeads, "head_independence"),
    (TwoPercentOffInBfloat16, "half_precision"),
    (OnePercentOffInFloat16, "half_precision"),
    (ClampsCounts, "counts_split"),
    (CountsInFloat32, "counts_split"),
    (GrowsLate, "state_size"),
    (ForgetsAtLongEdges, "chunks"),
    (StepsApart, "chunks"),
    (SeedsTheGenerator, "repeatable"),
    (DependsOnTheSeed, "repeatable"),
    (DrawsWithNumpy, "repeatable"),
    (wrong_beyond(100), "lengths"),
    (wrong_beyond(512), "lengths"),
    (WrongForWideKeys, "widths"),
    (WrongForWideValues, "widths"),
    (OffForASingleQuery, "cross"),
    (TakesExpandedForWhole, "layout"),
    (BendsLongValues, "linear_in_values"),
    (MindsTheOrderOfMany, "permutation"),
    (NormalisesFewOnly, "normalised"),
    (WrongGradientInFloat32, "gradient_in_float32"),
    (WrongGradientOfLongInputs, "gradient_of_long_inputs"),
    (LeakyBackward, "causality_of_gradients"),
    (WrongForwardMode, "forward_mode"),
    (ExplodesOnZeroKeys, "gradient_on_zero_keys"),
    (NoSlopeOnZeroKeys, "gradient_on_zero_keys"),
    (PeeksAtTheNextGate, "causality"),
    (IgnoresBeta, "definition"),
    (StepsWithoutGates, "chunks"),
    (longer_is_hotter, "prefix"),
    (long_is_unnormalised, "normalised"),
    (wide_is_unnormalised, "normalised"),
    (DetachesGates, "gradient_of_extras"),
    (TakesKeysForPositive, "signed_tokens"),
    (WrongForManyHeads, "definition"),
    (ChangesCounts, "inputs_kept"),
    (DividesZeroByZero, "finite"),
    (DecodesFromThePlaceBefore, "decoding"),
    (ForgetsAfterThePrompt, "decoding"),
    (StepsInPlace, "decoding"),
    (SeesAbsentTokens, "absent_tokens"),
    (many_are_hotter, "more_keys"),
    (wide_is_hotter, "more_coordinates"),
    (wide_values_mix, "more_features"),
    (leaks_at_348, "causality"),
    (hotter_of_width_80, "more_coordinates"),
    (hotter_for_one_head, "more_heads"),
    (hotter_for_one_element, "batch_independence"),
    (minds_heads_beside_each_other, "layout"),
    (clips_values, "linear_in_values"),
    (seeds_python, "repeatable"),
    (returns_its_values, "inputs_kept"),
    (no_slope_on_equal_keys, "gradient_on_equal_keys"),
    (steeper_in_bfloat16, "gradient_in_bfloat16"),
    (LogitsThreePercentOffInBfloat16, "logits_in_16_bits"),
    (hotter_in_bfloat16, "logits_in_16_bits"),
    (drifts_late, "later_places"),
    (hotter_for_more_queries_than_keys, "more_queries"),
    (repeats_the_last_query, "more_queries"),
    (hides_by_ten_thousand, "causality"),
    (takes_square_keys_for_transposed, "more_coordinates"),
    (pads_to_64_with_keys_of_zero, "normalised"),
    (nan_where_nobody_is, "nobody_present"),
    (overflows_in_float16, "finite_in_16_bits"),
    (wrong_gradient_of_wide_values, "gradient_of_long_inputs"),
    (softmax_in_float32, "double_precision"),
    (ClipsLogits, "large_logits"),
    (overflows_when_long, "long_in_float32"),
    (remembers_by_address, "repeatable"),
    (drops_while_training, "gradient_of_one_input"),
    (steeper_for_one_input, "gradient_of_one_input"),
    (wrong_where_blocks_are_full, "more_keys"),
    (normaliser_in_16_bits, "long_in_16_bits"),
    (results_in_16_bits, "long_in_16_bits"),
    (state_in_16_bits, "long_in_16_bits"),
    (late_values_in_8_bits, "long_in_16_bits"),
    (late_keys_in_8_bits, "long_in_16_bits"),
    (places_in_16_bits, "long_in_16_bits"),
    (hotter_beyond_1500, "prefix"),
    (unnormalised_beyond_1100, "normalised"),
    (leaks_beyond_1400, "causality"),
    (hotter_for_five_elements, "batch_independence"),
    (hotter_for_24_heads, "more_heads"),
    (hotter_of_width_40, "more_coordinates"),
    (hotter_of_96_tokens, "more_keys"),
    (draws_when_long, "repeatable"),
    (forgets_small_values, "linear_in_values"),
    (steeper_where("late", lambda x: x.shape[-2] > 600, 2), "gradient_of_long_inputs"),
    (steeper_where("in_batches", lambda x: x.shape[0] > 2, 1), "gradient_of_long_inputs"),
    (
        steeper_where("of_wide_float32", lambda x: x.dtype is torch.float32 and x.shape[-1] > 32, 0),
        "gradient_in_float32",
    ),
    (
        steeper_where("of_long_bfloat16", lambda x: x.dtype is torch.bfloat16 and x.shape[-2] > 100, 1),
        "gradient_in_bfloat16",
    ),
    (first_for_one_query, "decoding"),
    (off_among_heads_in_bfloat16, "half_precision"),
    (seeing_one_ahead_at(300), "causality"),
    (seeing_one_ahead_at(701), "causality"),
    (reads_64_coordinates, "more_coordinates"),
    (reads_coordinates_twice, "more_coordinates"),
    (turns_64_coordinates, "nothing_dropped"),
    (gives_64_features, "more_features"),
    (drops_the_last_of_odd_many, "nothing_dropped"),
    (map_in_float32, "form_in_16_bits"),
    (float32_inside, "double_precision"),
]
"""What is wrong, and the one check that must tell it."""
