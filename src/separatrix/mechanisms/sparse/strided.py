"""Strided attention of the Sparse Transformer."""

from __future__ import annotations

from separatrix.core.parameters import natural
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms import _blocks
from separatrix.mechanisms._blocks import rows_per_block, split_range
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._recompute import recompute_by_rows
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPositions, Mask, PatternMechanism, QueryPositions
from separatrix.mechanisms.sparse.window import nearby_keys


class Strided(PatternMechanism):
    """`f = softmax(<q,k>)` over |i-j| < stride and where stride divides i-j (arXiv 1904.10509).

    Both patterns of the paper in one head. With stride near sqrt(n) a query sees about 3 sqrt(n) keys. With
    more queries than keys, a query past the end may see none and gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(5.0).reshape(1, 1, 5, 1)
    >>> mechanism_named("strided:stride=2")(0 * x, x, x, causal=True).flatten()
    tensor([0.0000, 0.5000, 1.0000, 2.0000, 2.2500])
    """

    name = "strided"
    formula = "softmax(<q,k>) over |i-j| < stride or stride | i-j"
    source = "[rec] Sparse Transformer, arXiv 1904.10509"
    stride: int = natural(64, at_least=1)
    """Nearer keys are all seen; beyond, every stride-th key is."""

    def sees(self, i: QueryPositions, j: KeyPositions, keys: int, causal: bool) -> Mask:
        return ((i - j).abs() < self.stride) | ((i - j) % self.stride == 0)

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        return [range(keys)]

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Read near keys as in a window, and far ones by phase, i mod stride: a phase sees only itself."""
        queries, keys, groups = q.shape[-2], k.shape[-2], k.shape[0] * k.shape[1]
        stride, causal = min(self.stride, max(queries, keys)), options.causal
        # Phases count from position 0; and a block has at least `stride` rows, with 3 stride near keys.
        if options.first or 3 * groups * stride**2 > max(_blocks.MAX_SCORES, groups * keys):
            return super().__call__(q, k, v, causal=causal, first=options.first)
        q = functional.pad(q, (0, 0, 0, -queries % stride))
        k_phases, v_phases = (_by_phase(functional.pad(x, (0, 0, 0, -keys % stride)), stride) for x in (k, v))

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, k_phases: Tensor, v_phases: Tensor) -> Tensor:
            near = nearby_keys(rows, stride, keys)
            i = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
            j = torch.arange(near.start, near.stop, device=q.device)[None, :]
            far = i % stride + stride * torch.arange(k_phases.shape[-2], device=q.device)[None, :]
            visible = torch.cat([(i - j).abs() < stride, (far != i) & (far < keys)], -1)
            if causal:
                visible = visible & (torch.cat([j.expand(len(i), -1), far], -1) <= i)
            near_logits = q @ k[..., near.start : near.stop, :].mT
            far_logits = _by_position(_by_phase(q, stride) @ k_phases.mT)
            weights = softmax(torch.cat([near_logits, far_logits], -1), visible.to(q.dtype))
            near_weights, far_weights = weights[..., : len(near)], weights[..., len(near) :]
            far_values = _by_position(_by_phase(far_weights, stride) @ v_phases)
            return near_weights @ v[..., near.start : near.stop, :] + far_values

        step = stride * max(1, min(ROWS // stride, rows_per_block(groups * (3 * stride**2 + keys))))
        blocks = split_range(0, q.shape[-2], step)
        return recompute_by_rows(attend, blocks, q, k, v, k_phases, v_phases)[..., :queries, :]


def _by_phase(
    x: Float[Tensor, "batch heads tokens width"], stride: int
) -> Float[Tensor, "batch heads {stride} cycles width"]:
    """Sort tokens by position mod stride."""
    return x.reshape(*x.shape[:-2], -1, stride, x.shape[-1]).transpose(-3, -2)


def _by_position(x: Float[Tensor, "batch heads stride cycles width"]) -> Float[Tensor, "batch heads tokens width"]:
    """Sort tokens by position again."""
    return x.transpose(-3, -2).flatten(-3, -2)
