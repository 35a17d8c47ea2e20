"""2-simplicial attention: pairs of tokens are attended to, by logits of three factors."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms import _base
from separatrix.mechanisms._base import Attended, Counts, Keys, Mechanism, Queries, Values, form
from separatrix.mechanisms._limits import least
from separatrix.mechanisms._recomputed import recomputed
from separatrix.mechanisms.extras import SECOND_KEYS, SECOND_VALUES
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.sparse.window import around, blocks_of, last_places


class SimplicialParameters(Parameters):
    """How near the two tokens of a pair are, and what second keys are where none are given."""

    owner = "simplicial"
    window: Natural = 512
    second_window: Natural = 32
    second: str = "key"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        least("window", 1),
        least("second_window", 1),
        Constraint(
            ("second",),
            lambda p: p.second in ("key", "one"),
            lambda p: f"second={p.second} is unknown; second keys are key, or one",
        ),
    )


class Simplicial(Mechanism):
    """`o_i = sum of f_ijl v_j v'_l`, `f_i = softmax(sum of q_i k_j k'_l)` over pairs (j, l) of tokens.

    Both products are channel by channel (arXiv 2507.02754). The first of a pair is nearer than `window`, the
    second nearer than `second_window`, 512 and 32 in the paper; with causal neither comes after the query, as
    always in the paper. A second key and value of each token are learned there: `second_keys` of shape
    (batch, heads, tokens, width) and `second_values` (batch, heads, tokens, features). Where they are not
    given, values are 1 and keys the keys themselves, or with second=one 1 as well, which is softmax over
    the first window. Left out is the 1/sqrt(width) on logits. Time and memory are linear in the tokens, and
    in the product of the windows.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one, v = torch.ones(1, 1, 2, 1), torch.tensor([3.0, 5.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("simplicial")(one, one, v, causal=True, second_values=v).flatten().tolist()
    [9.0, 16.0]
    """

    name = "simplicial"
    formula = (
        "sum f_ijl v_j v'_l, f_i = softmax(sum_d q_id k_jd k'_ld) over pairs |i-j| < window, |i-l| < second"
    )
    source = "[rec] arXiv 2507.02754, with second keys and values that are not learned; all but causal [ours]"
    family = "score kernel"
    permutation_equivariant = False
    takes_counts = False
    takes_first = True
    schema = SimplicialParameters
    example: ClassVar[dict[str, object]] = {"window": 16, "second_window": 4}
    parameters: SimplicialParameters
    extras = (SECOND_KEYS, SECOND_VALUES)

    def default_keys(self, k: Keys) -> Keys:
        """The second keys where none are given."""
        return k if self.parameters.second == "key" else torch.ones_like(k)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        second_keys, second_values = more["second_keys"].to(k), more["second_values"].to(v)
        out, first = [v[..., :0, :]], more.get("first", 0)
        for i in range(first, first + q.shape[-2]):
            keys = min(k.shape[-2], i + 1) if causal else k.shape[-2]
            ranges = (around(range(i, i + 1), size, keys) for size in self._windows)
            near, second = (slice(each.start, each.stop) for each in ranges)
            pairs = k[..., near, None, :] * second_keys[..., None, second, :]
            values = v[..., near, None, :] * second_values[..., None, second, :]
            logits = (q[..., i - first, None, None, :] * pairs).sum(-1)
            weights = logits.flatten(-2).softmax(-1)
            out.append(weights[..., None, :] @ values.flatten(-3, -2))
        return torch.cat(out, dim=-2)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """Some queries at a time, each with its own window: times the keys they ask the second keys."""
        second_keys, second_values = more["second_keys"].to(k), more["second_values"].to(v)
        out, first = [v[..., :0, :]], more.get("first", 0)
        end, keys = first + q.shape[-2], k.shape[-2]
        sizes = (min(size, max(end, keys)) for size in self._windows)
        near, second = (range(1 - size, 1 if causal else size) for size in sizes)
        held = len(near) * max(len(second), k.shape[-1], v.shape[-1]) * k.shape[0] * k.shape[1]
        for rows in blocks_of(max(1, _base.BLOCK // held), first, end):
            some = q[..., rows.start - first : rows.stop - first, :]
            attend = partial(_rows, rows, near, second)
            out.append(recomputed(attend, some, k, second_keys, v, second_values))
        return torch.cat(out, dim=-2)

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        near, second = self._windows
        size = second if stream in (SECOND_KEYS.name, SECOND_VALUES.name) else near
        return (last_places(tokens, size - 1),)

    @property
    def _windows(self) -> tuple[int, int]:
        return self.parameters.window, self.parameters.second_window


def _rows(
    rows: range,
    near: range,
    second: range,
    q: Tensor,
    k: Tensor,
    second_keys: Tensor,
    v: Tensor,
    second_values: Tensor,
) -> Tensor:
    """What the queries of these rows read, from keys and second keys at these offsets."""
    asked = q[..., None, :] * windows(k, rows, near)
    logits = asked @ windows(second_keys, rows, second).mT
    there, also = (in_range(rows, each, k.shape[-2]).to(k) for each in (near, second))
    pairs = there[:, :, None] * also[:, None, :]
    weights = softmax_of(logits.flatten(-2), pairs.flatten(-2)).reshape(logits.shape)
    heard = weights @ windows(second_values, rows, second)
    return (heard * windows(v, rows, near)).sum(-2)


def windows(
    x: Float[Tensor, "batch heads keys width"], rows: range, offsets: range
) -> Float[Tensor, "batch heads queries offsets width"]:
    """What stands at these offsets from each of the rows, and zeros where nothing does.

    >>> windows(torch.arange(5.0).reshape(1, 1, 5, 1), range(1, 3), range(-2, 1)).squeeze()
    tensor([[0., 0., 1.],
            [0., 1., 2.]])
    """
    start, stop = rows.start + offsets.start, rows.stop + offsets.stop - 1
    part = x[..., max(0, start) : max(0, stop), :]
    before = max(0, -start)
    part = functional.pad(part, (0, 0, before, stop - start - before - part.shape[-2]))
    return part.unfold(-2, len(offsets), 1).mT


def in_range(rows: range, offsets: range, keys: int) -> Bool[Tensor, "queries offsets"]:
    """Whether there is a key at these offsets from each of the rows."""
    places = torch.arange(rows.start, rows.stop)[:, None] + torch.arange(offsets.start, offsets.stop)
    return (places >= 0) & (places < keys)
