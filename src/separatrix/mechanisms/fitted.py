"""A callable of one's own made to fit tokens of any size, as constructions have them.

Constructions have one head, queries and keys of 1 to 102 coordinates and as many values as the reader looks
at. What a module takes was settled when it was made. Queries and keys are padded with zeros to its width, the
one head stands in all of its heads and the first is read, and values are attended as many features at a time
as it takes. A linear map of its own that it applies to values (learned projections and biases) is measured on
single tokens, and undone: what is read is attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, functional, torch
from separatrix.mechanisms import observed

if TYPE_CHECKING:
    from separatrix.mechanisms.custom import CustomMechanism

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], Tensor]
MIXED = (
    "what single heads or tokens give is combined in a way that could not be undone, so there is no one "
    "attention for the reader to look at; make it with one head, or without an output projection"
)
WIDER = (16, 32, 64, 128, 256)
"""Widths that are tried where tokens are wider than the width that was found."""
MOST_MAGNIFIED = 1e6
"""A map of values that magnifies rounding more than this when it is undone is not."""


@dataclass(frozen=True)
class ValueMap:
    """What is done to values beside weighing them, v → v @ matrix + shift, and its inverse."""

    shift: Tensor
    inverse: Tensor
    magnified: float
    """How many times undoing it magnifies rounding."""

    def undone(self, out: Tensor) -> Tensor:
        """What attention gave before the map."""
        return (out - self.shift.to(out.dtype)) @ self.inverse.to(out.dtype)


class Fitted:
    """A mechanism that takes queries, keys and values of any size that can be made to fit."""

    def __init__(self, mechanism: CustomMechanism) -> None:
        self.mechanism = mechanism
        self._wider: dict[int, int | None] = {}
        self.sizes = observed.Sizes(mechanism.fixed_width, mechanism.fixed_features, mechanism.fixed_heads)
        with torch.no_grad():
            self.values, self.mixes = measured_map(mechanism, self.sizes)

    @property
    def magnified(self) -> float:
        """How many times undoing the map of values magnifies rounding."""
        return 1.0 if self.values is None else self.values.magnified

    @property
    def notes(self) -> list[str]:
        """How it is called where sizes differ from its own, a sentence each."""
        width, features, heads = self.sizes.width, self.sizes.features, self.sizes.heads
        found = []
        if width is not None:
            found.append(f"It takes width {width}: shorter queries and keys are padded with zeros.")
        if features is not None and not self.mixes:
            found.append(f"Values are given to it {features} features at a time.")
        if heads is not None and heads > 1:
            found.append(f"It takes {heads} heads: all are given the same tokens, and the first is read.")
        if self.values is not None:
            found.append("It maps values linearly; the map was measured on single tokens and is undone.")
        return found

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attention, as a mechanism that takes any size would give it."""
        heads = self.sizes.heads
        if self.mixes:
            raise UsageError(f"{self.mechanism.name} mixes values: {MIXED}")
        if (width := self._width(q.shape[-1])) is not None:
            q, k = (functional.pad(x, (0, width - x.shape[-1])) for x in (q, k))
        if heads is None or q.shape[1] != 1:
            return self._in_parts(q, k, v, counts, causal)
        q, k, v = (x.expand(-1, heads, -1, -1) for x in (q, k, v))
        return self._in_parts(q, k, v, counts, causal)[:, :1]

    def _width(self, least: int) -> int | None:
        """The width to pad queries and keys to, the first it takes that is not less; None if any will do."""
        own = self.sizes.width
        if own is None or least <= own:
            return own
        if least not in self._wider:
            tried = (each for each in WIDER if least <= each)
            sizes = (observed.Sizes(each, self.sizes.features, self.sizes.heads) for each in tried)
            taken = (size.width for size in sizes if observed.attends(self.mechanism.usual, size))
            with torch.no_grad():
                self._wider[least] = next(taken, None)
        if self._wider[least] is None:
            raise UsageError(f"{self.mechanism.name} takes width {own}, and queries and keys have {least} here")
        return self._wider[least]

    def _in_parts(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, causal: bool) -> Tensor:
        most, features = self.sizes.features, v.shape[-1]
        if most is None:
            return self._undone(self.mechanism(q, k, v, counts, causal))
        parts = torch.split(v, most, dim=-1)
        padded = (functional.pad(part, (0, most - part.shape[-1])) for part in parts)
        found = [self._undone(self.mechanism(q, k, part, counts, causal)) for part in padded]
        return torch.cat(found, dim=-1)[..., :features]

    def _undone(self, out: Tensor) -> Tensor:
        return out if self.values is None else self.values.undone(out)


def measured_map(mechanism: CustomMechanism, sizes: observed.Sizes) -> tuple[ValueMap | None, bool]:
    """The map of values, None where there is none; and whether they are mixed in another way."""
    attend = mechanism.usual
    if sizes.features is None or observed.minds_no_features(attend, sizes):
        return None, False
    q, k, v = (x[:1, :, :1] for x in observed.tokens(sizes, 1))
    features = sizes.features
    try:
        shift = attend(q, k, torch.zeros_like(v))[:, :1]
        units = torch.eye(features, dtype=v.dtype)[:, None, None].expand(-1, v.shape[1], -1, -1)
        matrix = attend(q.expand(features, -1, -1, -1), k.expand(features, -1, -1, -1), units)
        matrix = matrix[:, 0, 0] - shift[0, 0]
        magnified = torch.linalg.cond(matrix).item()
        if not magnified < MOST_MAGNIFIED:
            return None, True
        found = ValueMap(shift, torch.linalg.inv(matrix), magnified)
        undone = observed.minds_no_features(lambda *x: found.undone(attend(*x)[:, :1]), sizes, observed.LOOSE)
        q, k, v = observed.tokens(sizes)
        ones = found.undone(attend(q, k, torch.ones_like(v))[:, :1])
        undone = undone and observed.alike(ones, torch.ones_like(ones), observed.LOOSE)
    except Exception:  # whatever a stranger raises: it is not undone
        return None, True
    return (found, False) if undone else (None, True)
