"""2-simplicial attention: pairs of tokens are attended to, by logits of three factors."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.core.parameters import choice, natural
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import SECOND_KEYS, SECOND_VALUES
from separatrix.mechanisms.kernels._streamed import softmax
from separatrix.mechanisms.sparse.window import last_positions, nearby_keys


class Simplicial(Mechanism):
    """`o_i = sum of f_ijl v_j v'_l`, `f_i = softmax(sum of q_i k_j k'_l)` over pairs (j, l) of tokens.

    Both products are channel by channel (arXiv 2507.02754). The first of a pair is nearer than `window`, the
    second nearer than `second_window`, 512 and 32 in the paper; with causal neither comes after the query, as
    always in the paper. A second key and value of each token are learned there: `second_keys` of shape
    (batch, heads, tokens, width) and `second_values` (batch, heads, tokens, features). If they are not given,
    values are 1 and keys the keys themselves, or with second=one 1 as well, which is softmax over the first
    window. The 1/sqrt(width) on logits is left out. Time and memory are linear in the tokens, and in the
    product of the windows.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one, v = torch.ones(1, 1, 2, 1), torch.tensor([3.0, 5.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("simplicial")(one, one, v, causal=True, second_values=v).flatten().tolist()
    [9.0, 16.0]
    """

    name = "simplicial"
    formula = "sum f_ijl v_j v'_l, f_i = softmax(sum_d q_id k_jd k'_ld) over pairs |i-j| < window, |i-l| < second"
    source = "[rec] arXiv 2507.02754, with second keys and values that are not learned; all but causal [ours]"
    family = "score kernel"
    permutation_equivariant = False
    takes_first = True
    example: ClassVar[dict[str, object]] = {"window": 16, "second_window": 4}
    window: int = natural(512, at_least=1)
    """The first token of a pair is nearer than this."""
    second_window: int = natural(32, at_least=1)
    """The second token of a pair is nearer than this."""
    second: str = choice("key", "one", default="key")
    """The second keys if none are given: the keys themselves, or ones."""
    extras = (SECOND_KEYS, SECOND_VALUES)

    def default_second_keys(self, k: Keys) -> Keys:
        """Return the second keys of a call that does not give them."""
        return k if self.second == "key" else torch.ones_like(k)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        second_keys, second_values = extras["second_keys"].to(k), extras["second_values"].to(v)
        out, first = [v[..., :0, :]], options.first
        for i in range(first, first + q.shape[-2]):
            keys = min(k.shape[-2], i + 1) if options.causal else k.shape[-2]
            ranges = (nearby_keys(range(i, i + 1), size, keys) for size in self._windows)
            near, second = (slice(part.start, part.stop) for part in ranges)
            pairs = k[..., near, None, :] * second_keys[..., None, second, :]
            values = v[..., near, None, :] * second_values[..., None, second, :]
            logits = (q[..., i - first, None, None, :] * pairs).sum(-1)
            weights = logits.flatten(-2).softmax(-1)
            out.append(weights[..., None, :] @ values.flatten(-3, -2))
        return torch.cat(out, dim=-2)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute blocks of queries, each with its own window: queries times keys attend to second keys."""
        second_keys, second_values = extras["second_keys"].to(k), extras["second_values"].to(v)
        queries, keys, first = q.shape[-2], k.shape[-2], options.first
        sizes = (min(size, max(first + queries, keys)) for size in self._windows)
        near, second = (range(1 - size, 1 if options.causal else size) for size in sizes)

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor, second_keys: Tensor, second_values: Tensor) -> Tensor:
            positions = range(first + rows.start, first + rows.stop)
            products = q[..., None, :] * windows(k, positions, near)
            logits = products @ windows(second_keys, positions, second).mT
            is_near, is_second = (in_range(positions, part, keys).to(k) for part in (near, second))
            pairs = is_near[:, :, None] * is_second[:, None, :]
            weights = softmax(logits.flatten(-2), pairs.flatten(-2)).reshape(logits.shape)
            return (weights @ windows(second_values, positions, second) * windows(v, positions, near)).sum(-2)

        # The largest tensor of one query: its logits, its products with keys, or the values in its window.
        numbers = len(near) * max(len(second), k.shape[-1], v.shape[-1])
        return attend_by_blocks(attend, q, k, v, second_keys, second_values, scores_per_query=numbers)

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        near, second = self._windows
        size = second if stream in (SECOND_KEYS.name, SECOND_VALUES.name) else near
        return (last_positions(tokens, size - 1),)

    @property
    def _windows(self) -> tuple[int, int]:
        return self.window, self.second_window


def windows(
    x: Float[Tensor, "batch heads keys width"], rows: range, offsets: range
) -> Float[Tensor, "batch heads queries offsets width"]:
    """Return the tokens at these offsets from each of the rows, and zeros if there are none.

    >>> windows(torch.arange(5.0).reshape(1, 1, 5, 1), range(1, 3), range(-2, 1)).squeeze()
    tensor([[0., 0., 1.],
            [0., 1., 2.]])
    """
    start, stop = rows.start + offsets.start, rows.stop + offsets.stop - 1
    # Positions outside are filled with zeros, which callers mask by `in_range`.
    part = x[..., max(0, start) : max(0, stop), :]
    before = max(0, -start)
    part = functional.pad(part, (0, 0, before, stop - start - before - part.shape[-2]))
    return part.unfold(-2, len(offsets), 1).mT


def in_range(rows: range, offsets: range, keys: int) -> Bool[Tensor, "queries offsets"]:
    """Return whether there is a key at these offsets from each of the rows."""
    positions = torch.arange(rows.start, rows.stop)[:, None] + torch.arange(offsets.start, offsets.stop)
    return (positions >= 0) & (positions < keys)
