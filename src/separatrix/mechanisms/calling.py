"""How a user's own mechanism is called: what has to be known before anything else is read."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.custom import CustomMechanism, called_with
from separatrix.mechanisms.logits import LogitScale, logit_scale
from separatrix.mechanisms.weights import held_by


@dataclass(frozen=True)
class Calling:
    """How a mechanism is called."""

    mechanism: Mechanism
    scale: LogitScale | None = None
    """Of the logits, where one is hidden in it."""
    notes: tuple[str, ...] = ()
    """How tokens are made to fit, a sentence each."""

    @property
    def words(self) -> list[str]:
        """All of it, a sentence each, the scale first."""
        return [*([] if self.scale is None else [self.scale.words]), *self.notes]


def calling_of(mechanism: Mechanism) -> Calling:
    """How a mechanism is called; ours are called as they are."""
    if not isinstance(mechanism, CustomMechanism):
        return Calling(mechanism)
    scale = logit_scale(mechanism)
    notes = mechanism.fitted.notes
    if drawn := drawn_note(mechanism):
        notes.append(drawn)
    elif scale is None and held_by(mechanism.attend):
        notes.append("It has weights of its own: what follows is about these.")
    return Calling(mechanism, scale, tuple(notes))


def drawn_note(mechanism: CustomMechanism) -> str:
    """That its weights were drawn, and from which seed; empty where they were not."""
    seed = mechanism.parameters.seed
    return "" if seed is None else f"Its weights were drawn with seed {seed}; another seed= draws others."


def scale_note(mechanism: CustomMechanism, width: int) -> str:
    """That its logits are scaled on queries and keys of this width, and what undoes it; empty where not."""
    scale = logit_scale(mechanism)
    if scale is None:
        return ""
    if scale.by_width and mechanism.fixed_width is None:
        if width == 1:
            return "It divides its logits by sqrt(width), which is 1 here: keys have width 1."
        what = f"It divides its logits by sqrt(width), {sqrt(width):.4g} here"
    else:
        what = scale.what
    undone = called_with(mechanism, {"scale": scale.undone_by})
    return f"{what}; {undone.typed} undoes it."
