"""Mechanisms that wrap another one and change its tokens or its weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from separatrix.core.parameters import text
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._types import Keys, Queries, Values
from separatrix.mechanisms.extras import Extra, TokenSizes


class WrapperMechanism(Mechanism):
    """Holds the mechanism that the parameter `inner` names, and takes its extras in addition to its own."""

    family = "positional"
    permutation_equivariant = False
    takes_first = True
    inner: str = text("softmax")
    """The mechanism inside, with one parameter at most."""
    inner_mechanism: Mechanism

    def __init__(self, /, **parameters: object) -> None:
        from separatrix.mechanisms.load import mechanism_named

        super().__init__(**parameters)
        inner = self.inner_mechanism = mechanism_named(self.inner)
        # Properties of the inner mechanism override class variables, for this instance alone.
        vars(self).update(
            length_free=inner.length_free,
            streams=inner.streams,
            extras=(*type(self).extras, *(_extra_of(inner, extra) for extra in inner.extras)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The functions in the extras cannot be pickled; the name is enough to make the mechanism again.
        from separatrix.mechanisms.load import mechanism_named

        return mechanism_named, (self.spelled,)

    @property
    def is_normalised(self) -> bool:
        return self.inner_mechanism.is_normalised

    def sizes(self, q: Queries, k: Keys, v: Values) -> TokenSizes:
        return self.inner_mechanism.sizes(q, k, v)

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        return self.inner_mechanism.readable(tokens, stream)


def _extra_of(inner: Mechanism, extra: Extra) -> Extra:
    """Return an extra of the inner mechanism, with the default that it has there."""
    return replace(extra, compute_default=lambda mechanism, q, k, v: extra.default(inner, q, k, v))
