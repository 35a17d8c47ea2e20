"""How the contract calls a mechanism: all checks go through here, so what a call is given is said once."""

from __future__ import annotations

from torch import Tensor

from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.recurrent._base import RecurrentMechanism


def fast(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False
) -> Tensor:
    """The fast form."""
    return mechanism(q, k, v, counts, causal)


def defined(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False
) -> Tensor:
    """The definition."""
    return mechanism.definition(q, k, v, counts, causal)


def stepped(mechanism: RecurrentMechanism, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence token by token."""
    return mechanism.unrolled(q, k, v)


def chunked(mechanism: RecurrentMechanism, q: Tensor, k: Tensor, v: Tensor, chunk: int) -> Tensor:
    """A recurrence in runs of tokens."""
    return mechanism.chunked(q, k, v, chunk)[0]


FORMS = {"fast form": fast, "definition": defined}
"""Both forms, by the name they have in messages."""
