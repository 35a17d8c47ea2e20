"""Weights that fade with what lies between key and query."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

from separatrix.core.tensors import Bool, Float, Tensor, torch
from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Present,
    Queries,
    Values,
    by_blocks_of_queries,
    form,
    seen_keys,
)
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms.kernels._streamed import softmax_of
from separatrix.mechanisms.recurrent._decay import Kept

Fade = Float[Tensor, "batch heads queries keys"]
"""The logs of what is left between key and query, 0 or less."""
Seen = Bool[Tensor, "#batch 1 #queries keys"]


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
    def kept(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Kept:
        """The sums of log gates up to each token, of which there is one per token and head."""

    def weights(
        self, q: Queries, k: Keys, fade: Fade, seen: Seen, places: range, extras: dict[str, Any]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The weights of these keys, for queries at these places."""
        return softmax_of(q @ k.mT + fade, seen.to(fade))

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        first, present = more.pop("first", 0), more.pop("present", None)
        return self._attended(q, k, v, self.kept(k, present, more), range(q.shape[-2]), first, present, more)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """A block of queries at a time, each with the keys up to its last: memory is linear in the tokens."""
        first, present = more.pop("first", 0), more.pop("present", None)
        kept = self.kept(k, present, more)
        attend = partial(self._rows, tuple(more), kept.dtype, first, present)
        return by_blocks_of_queries(attend, q, k, v, kept.logs, kept.resets, *more.values())

    def _rows(
        self,
        names: tuple[str, ...],
        dtype: torch.dtype,
        first: int,
        present: Tensor | None,
        rows: range,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        logs: Tensor,
        resets: Tensor | None,
        *given: Any,
    ) -> Tensor:
        """What the queries of these rows read."""
        past, extras = slice(0, first + rows.stop), dict(zip(names, given, strict=True))
        there = None if present is None else present[:, past]
        kept = Kept(logs, resets, dtype).part(past)
        return self._attended(q, k[..., past, :], v[..., past, :], kept, rows, first, there, extras)

    def _attended(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        kept: Kept,
        rows: range,
        first: int,
        present: Tensor | None,
        extras: dict[str, Any],
    ) -> Attended:
        """What the queries of these rows read from the keys up to theirs."""
        places = range(first + rows.start, first + rows.stop)
        seen = seen_keys(rows, k, True, first, which_present(present, k))
        assert seen is not None
        return self.weights(q, k, _faded(kept, places), seen, places, extras) @ v


def _faded(kept: Kept, places: range) -> Fade:
    """The sum of log gates after each key up to each place; minus infinity across a reset.

    A place past the last key is taken for the last: there are no gates beyond.
    """
    here = torch.arange(places.start, places.stop, device=kept.logs.device).clamp(max=kept.logs.shape[-2] - 1)
    span = (kept.logs[..., here, :] - kept.logs.mT).to(kept.dtype)
    if kept.resets is None:
        return span
    return span.masked_fill(kept.resets[..., here, :] != kept.resets.mT, -torch.inf)
