"""Softmax over logits that fade with what lies between key and query."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    blocks_of_queries,
    form,
    seen_keys,
)
from separatrix.mechanisms.recurrent._decay import Kept, LogGates, accumulated
from separatrix.tensors import Float, Tensor, torch


class FadingMechanism(Mechanism):
    """`f_ij = softmax_j(<q_i,k_j> + log a_{j+1} + ... + log a_i)` over j up to i, with gates a in [0, 1].

    A gate of 0 is a reset, before which nothing is seen. An absent token fades nothing.
    """

    family = "positional"
    causality = Causality.ALWAYS
    permutation_equivariant = False
    takes_counts = False
    takes_first = True
    takes_present = True

    @abstractmethod
    def gates(self, k: Keys, extras: dict[str, Any]) -> LogGates:
        """Logs of the gates, one per token and head."""

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        first, present = more.pop("first", 0), more.pop("present", None)
        return _attended(q, k, v, self._kept(k, present, more), range(q.shape[-2]), first, present)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """A block of queries at a time, each with the keys up to its last: memory is linear in the tokens."""
        first, present = more.pop("first", 0), more.pop("present", None)
        kept, out = self._kept(k, present, more), [v[..., :0, :]]
        for rows in blocks_of_queries(q, k):
            past = slice(0, first + rows.stop)
            there = None if present is None else present[:, past]
            some = q[..., rows.start : rows.stop, :]
            keys, values = k[..., past, :], v[..., past, :]
            out.append(_attended(some, keys, values, kept.part(past), rows, first, there))
        return torch.cat(out, dim=-2)

    def _kept(self, k: Keys, present: Tensor | None, extras: dict[str, Any]) -> Kept:
        gates = self.gates(k, extras)
        if present is not None:
            gates = gates.masked_fill(~present[:, None, :, None], 0)
        return accumulated(gates, k.dtype)


def _attended(
    q: Queries, k: Keys, v: Values, kept: Kept, rows: range, first: int = 0, present: Tensor | None = None
) -> Attended:
    """What the queries of these rows read from the keys up to theirs."""
    seen = seen_keys(rows, k, True, first, present)
    logits = q @ k.mT + _faded(kept, range(first + rows.start, first + rows.stop))
    if seen is None:
        return logits.softmax(-1) @ v
    blind = ~seen.any(-1, keepdim=True)
    return logits.where(seen, -torch.inf).masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0) @ v


def _faded(kept: Kept, places: range) -> Float[Tensor, "batch heads queries keys"]:
    """The sum of log gates after each key up to each place; minus infinity across a reset.

    A place past the last key is taken for the last: there are no gates beyond.
    """
    here = torch.arange(places.start, places.stop, device=kept.logs.device).clamp(max=kept.logs.shape[-2] - 1)
    span = (kept.logs[..., here, :] - kept.logs.mT).to(kept.dtype)
    if kept.resets is None:
        return span
    return span.masked_fill(kept.resets[..., here, :] != kept.resets.mT, -torch.inf)
