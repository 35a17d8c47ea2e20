"""Mechanisms that are each wrong in one way, and the check that must name it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from separatrix.mechanisms import Causality, Mechanism
from separatrix.mechanisms._positions import check_request
from separatrix.mechanisms.lowrank.nystrom import Nystrom
from separatrix.mechanisms.recurrent.retention import Retention


class Sound(Mechanism):
    """Softmax attention by its formula, with nothing wrong."""

    name = "sound"
    formula = "softmax(<q,k>) v"
    source = "tests"
    family = "score kernel"

    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        check_request(self, counts, causal)
        logits = (q @ k.mT).float() if q.dtype.itemsize < 4 else q @ k.mT
        if counts is not None:
            logits = logits + counts.log()[..., None, :]
        if causal:
            logits = logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf)
        return (logits.softmax(-1) @ v.to(logits.dtype)).to(v.dtype)


class Twisted(Sound):
    """Sound, with `twist` applied to every result."""

    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.twist(super().definition(q, k, v, *more, **options))

    def twist(self, out: Tensor) -> Tensor:
        raise NotImplementedError


class FastTwisted(Twisted):
    """Sound by definition, with `twist` applied to the fast form alone."""

    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return Sound.definition(self, q, k, v, *more, **options)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.twist(Sound.definition(self, q, k, v, *more, **options))


class LeaksTheFuture(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        check_request(self, counts, causal)
        return super().definition(q, k, v, counts)


class LeaksOneTokenAhead(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        out = super().definition(q, k, v, counts, causal)
        return out + 1e-6 * v.roll(-1, dims=-2) if causal else out


class MindsTheLength(Sound):
    """Causal softmax at a temperature that the number of all tokens sets."""

    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return super().definition(q * (1 + 1e-6 * k.shape[-2]), k, v, *more, **options)


class DropsNormalisation(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return 1.001 * out


class ForgetsAtChunkEdges(Retention):
    def chunked(self, q: Tensor, k: Tensor, v: Tensor, chunk: int = 64, **more: Any) -> Any:
        parts = zip(*(x.split(chunk, dim=-2) for x in (q, k, v)), strict=True)
        found = [Retention.chunked(self, *part, **more) for part in parts]
        return torch.cat([out for out, _ in found], dim=-2), found[-1][1]


class GrowingState(Retention):
    def step(
        self, state: tuple[Tensor, ...], q_t: Tensor, k_t: Tensor, v_t: Tensor, **extras_t: Any
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        after, out = super().step(state[:1], q_t, k_t, v_t, **extras_t)
        return (*after, *state[1:], k_t), out


class IgnoresCounts(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        check_request(self, counts, causal)
        return super().definition(q, k, v, None, causal)


class TakesCountsInSilence(Sound):
    takes_counts = False

    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        return super().definition(q, k, v, None, causal)


class TakesCausalInSilence(Sound):
    causality = Causality.NEVER

    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        return super().definition(q, k, v, counts, False)


class MixesBatchElements(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return 0.999 * out + 0.001 * out.mean(0, keepdim=True)


class MixesHeads(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return 0.999 * out + 0.001 * out.mean(1, keepdim=True)


class MindsTheOrder(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * (1 + 1e-6 * torch.arange(out.shape[-2], dtype=out.dtype)[:, None])


class ReturnsNaN(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out * torch.nan


class Overflows(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        check_request(self, counts, causal)
        scores = (q @ k.mT).exp() if counts is None else (q @ k.mT).exp() * counts[..., None, :]
        scores = scores.tril() if causal else scores
        return scores / scores.sum(-1, keepdim=True) @ v


class NeedsPositiveLogits(Sound):
    def definition(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return super().definition(q.sqrt() ** 2, k, v, *more, **options)


class ModifiesInputs(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        out = self.definition(q, k, v, *more, **options)
        with torch.no_grad():
            k *= 1.0001
        return out


class WrongShape(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out[..., :-1]


class WrongDtype(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out.float()


class ReadsUninitialisedMemory(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        fresh = torch.empty_like(out)
        fresh[..., 1:, :] = out[..., 1:, :]
        return fresh


class Detached(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return out.detach()


class HalfDetached(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return self.definition(q, k.detach(), v, *more, **options)


class Nondeterministic(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out + 1e-15 * torch.rand_like(out)


class OffByAThousandth(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return out + 1e-3


class OffInHalfPrecision(FastTwisted):
    def twist(self, out: Tensor) -> Tensor:
        return 1.1 * out if out.dtype is torch.bfloat16 else out


class OffWithFewKeys(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        out = self.definition(q, k, v, *more, **options)
        return out if q.shape[-2] == k.shape[-2] else 1.001 * out


class TakesMemoryForContiguous(Sound):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        q = q.as_strided(q.shape, torch.empty(q.shape).stride())
        return self.definition(q, k, v, *more, **options)


class BendsValues(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return out + 1e-6 * out**2


class OnceDifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return slope


class DifferentiableOnce(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        return OnceDifferentiable.apply(out)


class NystromOffByAThousandth(Nystrom):
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        return 1.001 * super().__call__(q, k, v, *more, **options)


class NystromOfOtherLandmarks(Nystrom):
    """The fast form takes its landmarks from other segments than the definition."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *more: Any, **options: Any) -> Tensor:
        shifted = super().__call__(q, k.roll(1, -2), v.roll(1, -2), *more, **options)
        few = k.shape[-2] <= self.landmarks
        return super().__call__(q, k, v, *more, **options) if few else shifted


class Raises(Twisted):
    def twist(self, out: Tensor) -> Tensor:
        raise RuntimeError("first line\nsecond line")


BROKEN: list[tuple[type[Mechanism], str]] = [
    (LeaksTheFuture, "causality"),
    (LeaksOneTokenAhead, "causality"),
    (MindsTheLength, "prefix"),
    (DropsNormalisation, "normalised"),
    (ForgetsAtChunkEdges, "chunks"),
    (GrowingState, "state_size"),
    (IgnoresCounts, "counts"),
    (TakesCountsInSilence, "counts"),
    (TakesCausalInSilence, "causal_flag"),
    (MixesBatchElements, "batch_independence"),
    (MixesHeads, "head_independence"),
    (MindsTheOrder, "permutation"),
    (ReturnsNaN, "finite"),
    (Overflows, "finite"),
    (NeedsPositiveLogits, "finite_signed"),
    (ModifiesInputs, "inputs_kept"),
    (WrongShape, "form"),
    (WrongDtype, "form"),
    (ReadsUninitialisedMemory, "poisoned_memory"),
    (Detached, "gradient"),
    (HalfDetached, "gradient"),
    (Nondeterministic, "repeatable"),
    (NystromOffByAThousandth, "definition"),
    (NystromOfOtherLandmarks, "definition"),
    (OffByAThousandth, "definition"),
    (OffInHalfPrecision, "half_precision"),
    (OffWithFewKeys, "cross"),
    (TakesMemoryForContiguous, "layout"),
    (BendsValues, "linear_in_values"),
    (DifferentiableOnce, "double_backward"),
    (Raises, "form"),
]
"""What is wrong, and the check that must find it, alone."""
