"""Attention whose weights are a function of one query's logits, computed a block of queries at a time."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    by_blocks_of_queries,
    form,
    seen_keys,
)

Logits = Float[Tensor, "*rows keys"]
PerRow = Float[Tensor, "*rows 1"]
Copies = Float[Tensor, "*#rows keys"]
"""How many tokens a key stands for in the eyes of a query: its count, or 0 where it is not seen."""


class StreamedMechanism(Mechanism):
    """`f = weights(<q,k_1>, ..., <q,k_n>)`, output `f v`, for weights of any kind."""

    family = "score kernel"
    coordinate_free = True
    takes_first = True
    takes_present = True

    @abstractmethod
    def weights(self, logits: Logits, copies: Copies) -> Logits:
        """The weight of every key, all its copies taken together; 0 where there are none. Extras follow."""

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        places, extras = _parted(more)
        logits = q @ k.mT
        copies = _copies(logits, counts, seen_keys(range(q.shape[-2]), k, causal, **places))
        return self.weights(logits, copies, **extras) @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The definition, a block of queries at a time: memory stays linear in the tokens."""
        places, extras = _parted(more)
        attend = partial(self._rows, causal, places, tuple(extras))
        return by_blocks_of_queries(attend, q, k, v, counts, *extras.values())

    def _rows(
        self,
        causal: bool,
        places: dict[str, Any],
        names: tuple[str, ...],
        rows: range,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        counts: Tensor | None,
        *given: Tensor,
    ) -> Tensor:
        """What the queries of these rows read."""
        logits = q @ k.mT
        copies = _copies(logits, counts, seen_keys(rows, k, causal, **places))
        return self.weights(logits, copies, **dict(zip(names, given, strict=True))) @ v


def _parted(more: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where queries stand and which keys are there, and the extras."""
    places = {name: x for name, x in more.items() if name in ("first", "present")}
    return places, {name: x for name, x in more.items() if name not in places}


def _copies(logits: Logits, counts: Counts | None, seen: Tensor | None) -> Copies:
    """The copies of every key that the queries see."""
    copies = logits.new_ones(1, logits.shape[-1]) if counts is None else counts[..., None, :].to(logits.dtype)
    return copies if seen is None else copies * seen


def softmax_of(logits: Logits, copies: Copies) -> Logits:
    """`copies exp(logit) / sum`, and zeros for a query that sees nothing.

    >>> softmax_of(torch.zeros(1, 3), torch.tensor([[1.0, 3.0, 0.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """
    logits = logits.masked_fill(copies <= 0, -torch.inf)
    # The shift cancels, so derivatives of every order stay right when it is taken for a constant.
    top = logits.detach().amax(-1, keepdim=True)
    scores = copies * (logits - top.masked_fill(top == -torch.inf, 0)).exp()
    return over(scores, scores.sum(-1, keepdim=True))


def over(top: Float[Tensor, "*#shape"], bottom: Float[Tensor, "*#shape"]) -> Tensor:
    """`top / bottom`, and `top` where the bottom is 0: there the top is 0 as well."""
    return top / bottom.masked_fill(bottom == 0, 1)
