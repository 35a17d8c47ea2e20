"""Strided attention of the Sparse Transformer."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms import _base
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._limits import least
from separatrix.mechanisms._recomputed import recomputed_by_rows
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.sparse._pattern import ROWS, KeyPlaces, PatternMechanism, QueryPlaces, Seen
from separatrix.mechanisms.sparse.window import around


class StridedParameters(Parameters):
    """How far a query sees in full, and how far apart it sees beyond."""

    owner = "strided"
    stride: Natural = 64
    constraints: ClassVar[tuple[Constraint, ...]] = (least("stride", 1),)


class Strided(PatternMechanism):
    """`f = softmax(<q,k>)` over |i-j| < stride and where stride divides i-j (arXiv 1904.10509).

    Both patterns of the paper in one head. With stride near sqrt(n) a query sees about 3 sqrt(n) keys.
    With more queries than keys, a query past the end may see none and gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.arange(5.0).reshape(1, 1, 5, 1)
    >>> mechanism_named("strided:stride=2")(0 * x, x, x, causal=True).flatten()
    tensor([0.0000, 0.5000, 1.0000, 2.0000, 2.2500])
    """

    name = "strided"
    formula = "softmax(<q,k>) over |i-j| < stride or stride | i-j"
    source = "[rec] Sparse Transformer, arXiv 1904.10509"
    schema = StridedParameters
    parameters: StridedParameters

    def sees(self, i: QueryPlaces, j: KeyPlaces, keys: int, causal: bool) -> Seen:
        stride = self.parameters.stride
        return ((i - j).abs() < stride) | ((i - j) % stride == 0)

    def columns(self, rows: range, keys: int, causal: bool) -> list[range]:
        return [range(keys)]

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """Near keys as in a window; far ones by phase, i mod stride, since a phase sees only itself."""
        queries, keys, groups = q.shape[-2], k.shape[-2], k.shape[0] * k.shape[1]
        stride = min(self.parameters.stride, max(queries, keys))
        if more or 3 * groups * stride**2 > max(_base.BLOCK, groups * keys):
            return super().__call__(q, k, v, counts, causal, **more)
        q = functional.pad(q, (0, 0, 0, -queries % stride))
        k_phases, v_phases = (_by_phase(functional.pad(x, (0, 0, 0, -keys % stride)), stride) for x in (k, v))
        step = stride * max(1, min(ROWS // stride, _base.BLOCK // (groups * (3 * stride**2 + keys))))
        blocks = [range(start, min(start + step, q.shape[-2])) for start in range(0, q.shape[-2], step)]
        rows = recomputed_by_rows(partial(_rows, stride, causal), blocks, q, k, v, k_phases, v_phases)
        return rows[..., :queries, :]


def _rows(
    stride: int,
    causal: bool,
    rows: range,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_phases: Tensor,
    v_phases: Tensor,
) -> Tensor:
    """What the queries of these rows read from near keys, and from those of their phase."""
    keys = k.shape[-2]
    near = around(rows, stride, keys)
    i = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
    j = torch.arange(near.start, near.stop, device=q.device)[None, :]
    far = i % stride + stride * torch.arange(k_phases.shape[-2], device=q.device)[None, :]
    seen = torch.cat([(i - j).abs() < stride, (far != i) & (far < keys)], -1)
    if causal:
        seen = seen & (torch.cat([j.expand(len(i), -1), far], -1) <= i)
    near_logits = q @ k[..., near.start : near.stop, :].mT
    far_logits = _by_place(_by_phase(q, stride) @ k_phases.mT)
    weights = softmax_of(torch.cat([near_logits, far_logits], -1), seen.to(q.dtype))
    near_weights, far_weights = weights[..., : len(near)], weights[..., len(near) :]
    far_values = _by_place(_by_phase(far_weights, stride) @ v_phases)
    return near_weights @ v[..., near.start : near.stop, :] + far_values


def _by_phase(
    x: Float[Tensor, "batch heads tokens width"], stride: int
) -> Float[Tensor, "batch heads {stride} cycles width"]:
    """Tokens sorted by place mod stride."""
    return x.reshape(*x.shape[:-2], -1, stride, x.shape[-1]).transpose(-3, -2)


def _by_place(
    x: Float[Tensor, "batch heads stride cycles width"],
) -> Float[Tensor, "batch heads tokens width"]:
    """Tokens back in their order."""
    return x.transpose(-3, -2).flatten(-3, -2)
