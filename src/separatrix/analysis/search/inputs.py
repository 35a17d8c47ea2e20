"""Questions about inputs: which edit of a few tokens X notices and Y does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from separatrix.analysis.search.instance import Instance, query_factor, recognise_family
from separatrix.analysis.search.separation import WORST, InstanceReading, separation
from separatrix.analysis.search.shrink import instance_size, shrink_instance
from separatrix.analysis.search.space import EDITS, FEW, MANY, Suggest, draw
from separatrix.core.documents import Document
from separatrix.exact.outputs.formulas import MOST_LITERAL
from separatrix.mechanisms import Mechanism

COUNTS = {"equal": FEW, "drowned": MANY}
"""The ways in which Y may fail, with the numbers of equal tokens that are tried."""
ANSWERS = {"equal": ("equal", "near"), "drowned": ("drowned",)}
"""The separations that answer each question: without proofs of Y's outputs, near is the best there is."""


@dataclass(frozen=True)
class InputFinding(Document):
    """Inputs on which X tells the labels apart and Y does not."""

    kind: Literal["inputs"]
    family: str
    """The family that the inputs resemble."""
    sentence: str
    """The difference between the labels."""
    way: str | None
    """How Y fails: equal, near or drowned."""
    shrunk: bool
    """Whether no single step of the shrinker makes it smaller."""
    instance: Instance
    x: InstanceReading
    y: InstanceReading

    @classmethod
    def build(cls, x: Mechanism, y: Mechanism, instance: Instance, shrunk: bool) -> InputFinding:
        """Read an instance by both mechanisms, and describe it."""
        family, sentence = recognise_family(instance)
        result = separation(x, y, instance)
        return cls("inputs", family, sentence, result.way, shrunk, instance, result.x, result.y)

    @property
    def size(self) -> tuple[Any, ...]:
        """The order of findings: small ones come first."""
        return (0, *instance_size(self.instance))


class InputQuestion:
    """One edit, and one way in which Y is to fail."""

    starts_at_zero = False

    def __init__(self, x: Mechanism, y: Mechanism, edit: str, way: str) -> None:
        self.x, self.y, self.edit, self.way = x, y, edit, way
        self.name = f"{edit} {way}"
        # Where a mechanism takes no counts, every token is computed by itself: few of them are affordable.
        is_literal = not (x.takes_counts and y.takes_counts)
        self.counts = tuple(n for n in COUNTS[way] if not is_literal or n <= MOST_LITERAL)

    def draw(self, suggest: Suggest) -> Instance:
        """Draw an instance."""
        return draw(suggest, self.edit, self.counts)

    def judge(self, candidate: Instance) -> tuple[float, bool]:
        """Return the objective of an instance, and whether it answers the question."""
        if candidate.d0 == candidate.d1:
            return WORST, False
        result = separation(self.x, self.y, candidate)
        return result.objective(self.way), result.way in ANSWERS[self.way] and self._has_edit(candidate)

    def _has_edit(self, instance: Instance) -> bool:
        if self.edit == "loudness" and not (query_factor(instance) or 0) > 0:
            return False
        return instance.differs_in == (EDITS[self.edit],)

    def build_finding(self, candidate: Instance, shrinks: bool) -> InputFinding:
        """Return the finding of an instance that answers the question, as small as possible."""
        way = separation(self.x, self.y, candidate).way
        small = shrink_instance(candidate, lambda step: self._holds(step, way)) if shrinks else candidate
        return InputFinding.build(self.x, self.y, small, shrinks)

    def _holds(self, instance: Instance, way: str | None) -> bool:
        try:
            return self._has_edit(instance) and separation(self.x, self.y, instance).way == way
        except Exception:  # no step leads to an instance on which a mechanism has no answer or raises
            return False


def input_questions(x: Mechanism, y: Mechanism) -> Iterator[InputQuestion]:
    """Yield every edit that Y may not notice, and the edits of single tokens that a crowd may drown.

    The order of tokens is a question only if X sees it.
    """
    for edit in EDITS:
        if edit != "order" or not x.permutation_equivariant:
            yield InputQuestion(x, y, edit, "equal")
    for edit in ("keys", "values"):
        yield InputQuestion(x, y, edit, "drowned")
