"""Questions about inputs: which edit of a few tokens X notices and Y does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.analysis.search._base import Judged, SearchFinding, SearchQuestion
from separatrix.analysis.search.family import loudness, recognised
from separatrix.analysis.search.instance import Instance
from separatrix.analysis.search.separation import WORST, Separation, separation
from separatrix.analysis.search.shrink import shrunk, size
from separatrix.analysis.search.space import EDITS, FEW, MANY, Suggest, draw
from separatrix.exact.outputs.formulas import MOST_LITERAL
from separatrix.mechanisms import Mechanism

WAYS = {"equal": FEW, "drowned": MANY}
"""How Y may fail, and how many tokens a row may stand for while that is looked for."""
ENOUGH = {"equal": ("equal", "near"), "drowned": ("drowned",)}
"""What answers a question: where Y's arithmetic proves nothing, near is all there is."""


@dataclass(frozen=True)
class InputFinding(SearchFinding):
    """An instance and what both mechanisms make of it."""

    kind: ClassVar[str] = "inputs"
    instance: Instance
    separation: Separation
    shrunk: bool

    @property
    def family(self) -> str:
        return recognised(self.instance)[0]

    @property
    def sentence(self) -> str:
        return recognised(self.instance)[1]

    @property
    def size(self) -> tuple[Any, ...]:
        return (0, *size(self.instance))

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "family": self.family,
            "sentence": self.sentence,
            "way": self.separation.way,
            "shrunk": self.shrunk,
            "instance": self.instance.as_json(),
            "x": self.separation.x.as_json(),
            "y": self.separation.y.as_json(),
        }


class InputQuestion(SearchQuestion):
    """One edit, and one way in which Y is to fail."""

    def __init__(self, x: Mechanism, y: Mechanism, edit: str, way: str) -> None:
        self.x, self.y, self.edit, self.way = x, y, edit, way
        self.name = f"{edit} {way}"
        literal = not (x.takes_counts and y.takes_counts)
        self.counts = tuple(count for count in WAYS[way] if not literal or count <= MOST_LITERAL)

    def draw(self, suggest: Suggest) -> Instance:
        return draw(suggest, self.edit, self.counts)

    def judge(self, candidate: Instance) -> Judged:
        if candidate.d0 == candidate.d1:
            return Judged(WORST, False)
        found = separation(self.x, self.y, candidate)
        return Judged(found.towards(self.way), found.way in ENOUGH[self.way] and self._asks_for(candidate))

    def _asks_for(self, instance: Instance) -> bool:
        louder = self.edit != "loudness" or ((factor := loudness(instance)) is not None and factor > 0)
        return instance.differs_in == (EDITS[self.edit],) and louder

    def finding(self, candidate: Instance, shrink: bool) -> InputFinding:
        way = separation(self.x, self.y, candidate).way
        small = shrunk(candidate, lambda each: self._holds(each, way)) if shrink else candidate
        return InputFinding(small, separation(self.x, self.y, small), shrink)

    def _holds(self, instance: Instance, way: str | None) -> bool:
        if not self._asks_for(instance):
            return False
        try:
            return separation(self.x, self.y, instance).way == way
        except Exception:  # where a mechanism has no answer, or a stranger's raises, there is no step
            return False


def input_questions(x: Mechanism, y: Mechanism) -> Iterator[InputQuestion]:
    """Every edit of which Y may notice nothing, and those of single tokens, which a crowd may drown.

    The order of tokens is asked about only where X sees it.
    """
    for edit in EDITS:
        if edit != "order" or not x.permutation_equivariant:
            yield InputQuestion(x, y, edit, "equal")
    for edit in ("keys", "values"):
        yield InputQuestion(x, y, edit, "drowned")
