"""How a user's own mechanism is called: what has to be known before anything else is read."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms.custom import CustomMechanism, with_call_options
from separatrix.mechanisms.how_called import SQRT, WIDTH_FACTORS
from separatrix.mechanisms.logits import LogitScale, measure_logit_scale
from separatrix.mechanisms.weights import held_by

UNKNOWN_SCALE = "The scale of its logits could not be measured"


@dataclass(frozen=True)
class Calling:
    """How a mechanism is called."""

    mechanism: Mechanism
    scale: LogitScale | None = None
    """Of the logits, where one is hidden in it."""
    notes: tuple[str, ...] = ()
    """How tokens are made to fit, a sentence each."""
    scale_known: bool = True
    """Whether the scale of the logits could be measured, or does not matter."""

    @property
    def scale_words(self) -> str:
        """What has to be known of the scale of the logits; empty where it is 1."""
        if not self.scale_known:
            return f"{UNKNOWN_SCALE}: verdicts are for the queries and keys as they are."
        return "" if self.scale is None else self.scale.words

    @property
    def words(self) -> list[str]:
        """All of it, a sentence each, the scale first."""
        return [*filter(None, [self.scale_words]), *self.notes]


def calling_of(mechanism: Mechanism) -> Calling:
    """How a mechanism is called; ours are called as they are."""
    if not isinstance(mechanism, CustomMechanism):
        return Calling(mechanism)
    measured = measure_logit_scale(mechanism)
    notes = mechanism.attend_any_size.notes
    if drawn := drawn_note(mechanism):
        notes.append(drawn)
    elif measured.scale is None and held_by(mechanism.attend):
        notes.append("It has weights of its own: what follows is about these.")
    # Where values are mixed there is no verdict that could depend on the scale.
    return Calling(mechanism, measured.scale, tuple(notes), measured.known or mechanism.attend_any_size.mixes)


def drawn_note(mechanism: CustomMechanism) -> str:
    """That its weights were drawn, and from which seed; empty where they were not."""
    seed = mechanism.parameters.seed
    return "" if seed is None else f"Its weights were drawn with seed {seed}; another seed= draws others."


def scale_note(mechanism: CustomMechanism, width: int) -> str:
    """That its logits are scaled on queries and keys of this width, and what undoes it; empty where not."""
    measured = measure_logit_scale(mechanism)
    scale, any_width = measured.scale, mechanism.fixed_width is None
    if not measured.known and (width > 1 or not any_width):
        rescaled = with_call_options(mechanism, {"scale": SQRT}).typed
        return f"{UNKNOWN_SCALE}; if it divides them by sqrt(width), ask {rescaled}."
    if scale is None:
        return ""
    if scale.law in WIDTH_FACTORS and any_width and scale.remainder is not None:
        if width == 1 and scale.remedy == "undoes it":
            return f"It divides its logits by {scale.divisor}, which is 1 here: keys have width 1."
        what = f"It divides its logits by {scale.divisor}, {WIDTH_FACTORS[scale.law](width):.4g} here"
    else:
        what = scale.what
    if scale.undone_by is None:
        return f"{what}."
    return f"{what}; {with_call_options(mechanism, {'scale': scale.undone_by}).typed} {scale.remedy}."
