"""A mechanism made of another one, which it shows other tokens, or whose weights it changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from separatrix.core.parameters import Parameters
from separatrix.mechanisms._base import Keys, Mechanism, Queries, Values
from separatrix.mechanisms.extras import Extra, Sizes


class AroundParameters(Parameters):
    """The mechanism inside."""

    inner: str = "softmax"


class AroundAnother(Mechanism):
    """Holds the mechanism that the parameter `inner` names, and takes its extras beside its own."""

    family = "positional"
    schema = AroundParameters
    parameters: AroundParameters
    permutation_equivariant = False
    takes_counts = False
    takes_first = True
    inner: Mechanism

    def __init__(self, /, **parameters: object) -> None:
        from separatrix.mechanisms.load import mechanism_named

        super().__init__(**parameters)
        inner = self.inner = mechanism_named(self.parameters.inner)
        vars(self).update(
            length_free=inner.length_free,
            streams=inner.streams,
            extras=(*type(self).extras, *(_of(inner, extra) for extra in inner.extras)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        from separatrix.mechanisms.load import mechanism_named

        return mechanism_named, (self.spelled,)

    @property
    def normalised(self) -> bool:
        return self.inner.normalised

    def sizes(self, q: Queries, k: Keys, v: Values) -> Sizes:
        return self.inner.sizes(q, k, v)


def _of(inner: Mechanism, extra: Extra) -> Extra:
    """An extra of another mechanism, whose default is what stands in there."""
    return replace(extra, default=lambda mechanism, q, k, v: extra.default(inner, q, k, v))
