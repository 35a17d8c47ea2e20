"""A user's callable made to fit tokens of any size, as constructions have them.

Constructions have one head, queries and keys of 1 to 102 coordinates and as many values as the reader looks
at. What a module takes was settled when it was made. Queries and keys are padded with zeros to its width, the
one head stands in all of its heads and the first is read, and values are attended as many features at a time
as it takes. A linear map of its own that it applies to values (learned projections and biases) is measured on
single tokens, and undone: what is read is attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
MAX_ERROR_FACTOR = 1e6
"""A map of values is not undone if that magnifies rounding errors more than this."""


@dataclass(frozen=True)
class ValueMap:
    """What is done to values beside weighing them, v → v @ matrix + shift, and its inverse."""

    shift: Tensor
    inverse: Tensor
    error_factor: float
    """The factor by which undoing it magnifies rounding errors."""

    def undo(self, out: Tensor) -> Tensor:
        """Return the output of attention before the map."""
        return (out - self.shift.to(out.dtype)) @ self.inverse.to(out.dtype)


class Fitted:
    """A mechanism that takes queries, keys and values of any size that can be made to fit."""

    def __init__(self, mechanism: CustomMechanism) -> None:
        self.mechanism = mechanism
        self._wider: dict[int, int | None] = {}
        self.sizes = observed.Sizes(mechanism.fixed_width, mechanism.fixed_features, mechanism.fixed_heads)
        with torch.no_grad():
            self.values, self.mixes = measure_value_map(mechanism, self.sizes)

    @property
    def notes(self) -> list[str]:
        """Sentences on how it is called with sizes other than its own."""
        width, features, heads = self.sizes.width, self.sizes.features, self.sizes.heads
        notes = []
        if width is not None:
            notes.append(f"It takes width {width}: shorter queries and keys are padded with zeros.")
        if features is not None and not self.mixes:
            notes.append(f"Values are given to it {features} features at a time.")
        if heads is not None and heads > 1:
            notes.append(f"It takes {heads} heads: all are given the same tokens, and the first is read.")
        if self.values is not None:
            notes.append("It maps values linearly; the map was measured on single tokens and is undone.")
        return notes

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend as a mechanism for tokens of any size."""
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
        """Return the width to pad queries and keys to, the least that it takes; None if it takes any."""
        own = self.sizes.width
        if own is None or least <= own:
            return own
        if least not in self._wider:
            sizes = (replace(self.sizes, width=width) for width in WIDER if least <= width)
            widths = (size.width for size in sizes if observed.attends(self.mechanism.usual, size))
            with torch.no_grad():
                self._wider[least] = next(widths, None)
        if self._wider[least] is None:
            raise UsageError(f"{self.mechanism.name} takes width {own}, and queries and keys have {least} here")
        return self._wider[least]

    def _in_parts(self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, causal: bool) -> Tensor:
        size, parts = self.sizes.features, [v]
        if size is not None:
            parts = [functional.pad(part, (0, size - part.shape[-1])) for part in torch.split(v, size, dim=-1)]
        outputs = [self.mechanism(q, k, part, counts, causal) for part in parts]
        if self.values is not None:
            outputs = [self.values.undo(out) for out in outputs]
        return outputs[0] if size is None else torch.cat(outputs, dim=-1)[..., : v.shape[-1]]


def measure_value_map(mechanism: CustomMechanism, sizes: observed.Sizes) -> tuple[ValueMap | None, bool]:
    """Return the map of values, None if there is none, and whether they are mixed in another way."""
    attend = mechanism.usual
    if sizes.features is None or observed.has_no_feature_order(attend, sizes):
        return None, False
    q, k, v = (x[:1, :, :1] for x in observed.tokens(sizes, 1))
    features = sizes.features
    try:
        shift = attend(q, k, torch.zeros_like(v))[:, :1]
        units = torch.eye(features, dtype=v.dtype)[:, None, None].expand(-1, v.shape[1], -1, -1)
        matrix = attend(q.expand(features, -1, -1, -1), k.expand(features, -1, -1, -1), units)
        matrix = matrix[:, 0, 0] - shift[0, 0]
        error_factor = torch.linalg.cond(matrix).item()
        if not error_factor < MAX_ERROR_FACTOR:
            return None, True
        value_map = ValueMap(shift, torch.linalg.inv(matrix), error_factor)
        is_undone = observed.has_no_feature_order(lambda *x: value_map.undo(attend(*x)[:, :1]), sizes, observed.LOOSE)
        q, k, v = observed.tokens(sizes)
        ones = value_map.undo(attend(q, k, torch.ones_like(v))[:, :1])
        is_undone = is_undone and observed.is_close(ones, torch.ones_like(ones), observed.LOOSE)
    except Exception:  # a user's mechanism may raise anything; then nothing is undone
        return None, True
    return (value_map, False) if is_undone else (None, True)
