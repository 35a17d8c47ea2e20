"""2-simplicial attention: pairs of tokens are attended to, by logits of three factors."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.mechanisms import _base
from separatrix.mechanisms._base import Attended, Counts, Keys, Mechanism, Queries, Values, form
from separatrix.mechanisms._limits import least
from separatrix.mechanisms.extras import SECOND_KEYS, SECOND_VALUES
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.sparse.window import around, blocks_of
from separatrix.parameters import Constraint, Natural, Parameters
from separatrix.tensors import Bool, Tensor, torch

ROWS = 8
"""Queries in a block: more of them would compute many pairs that only some of them see."""


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
    example: ClassVar[dict[str, object]] = {"window": 64, "second_window": 8}
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
            near, second = self._columns(range(i, i + 1), k.shape[-2], causal)
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
        """A few queries at a time: each times each key is a query to the second keys."""
        second_keys, second_values = more["second_keys"].to(k), more["second_values"].to(v)
        out, first = [v[..., :0, :]], more.get("first", 0)
        end, step = first + q.shape[-2], self._rows_at_once(k)
        for rows in blocks_of(step, first, end):
            near, second = self._columns(rows, k.shape[-2], causal)
            seen = self._pairs(rows, near, second, causal).to(k)
            if not seen.numel():
                out.append(v.new_zeros(*q.shape[:-2], len(rows), v.shape[-1]))
                continue
            asked = q[..., rows.start - first : rows.stop - first, None, :] * k[..., None, near, :]
            logits = asked @ second_keys[..., None, second, :].mT
            weights = softmax_of(logits.flatten(-2), seen.flatten(-2)).reshape(logits.shape)
            out.append((weights @ second_values[..., None, second, :] * v[..., None, near, :]).sum(-2))
        return torch.cat(out, dim=-2)

    def _columns(self, rows: range, keys: int, causal: bool) -> tuple[slice, slice]:
        """The keys, and the second keys, that some of these queries see."""
        sizes = self.parameters.window, self.parameters.second_window
        keys = min(keys, rows.stop) if causal else keys
        one, two = (around(rows, size, keys) for size in sizes)
        return slice(one.start, one.stop), slice(two.start, two.stop)

    def _pairs(
        self, rows: range, near: slice, second: slice, causal: bool
    ) -> Bool[Tensor, "queries near second"]:
        """Which pairs of these keys and second keys each of the queries sees."""
        i, *columns = (torch.arange(each.start, each.stop) for each in (rows, near, second))
        back, further = (i[:, None] - j for j in columns)
        sees, also = back.abs() < self.parameters.window, further.abs() < self.parameters.second_window
        if causal:
            sees, also = sees & (back >= 0), also & (further >= 0)
        return sees[:, :, None] & also[:, None, :]

    def _rows_at_once(self, k: Keys) -> int:
        """So few queries that the pairs which they see fit the streaming budget."""
        sizes = self.parameters.window, self.parameters.second_window
        near, second = (min(size + ROWS, k.shape[-2]) for size in sizes)
        held = max(1, near * max(second, k.shape[-1]) * k.shape[0] * k.shape[1])
        return min(ROWS, max(1, _base.BLOCK // held))
