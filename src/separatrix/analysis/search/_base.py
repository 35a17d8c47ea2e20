"""What a search asks: one question, drawn from a space of its own, with an answer that can be shrunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.analysis.search.space import Suggest


@dataclass(frozen=True)
class Judged:
    """How good a candidate is for the sampler, and whether it answers the question."""

    value: float
    found: bool


class SearchFinding(ABC):
    """Something on which X tells the labels apart and Y does not."""

    kind: ClassVar[str]
    shrunk: bool
    """Whether no single step of the shrinker makes it smaller; else it is as it was found."""

    @property
    @abstractmethod
    def family(self) -> str:
        """The family it resembles, in a word or two."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What it resembles, in a sentence."""

    @property
    @abstractmethod
    def size(self) -> tuple[Any, ...]:
        """Findings of smaller size are shown first."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """The finding with all that is needed to check it again."""


class SearchQuestion(ABC):
    """One way in which Y may fail where X does not. Questions take turns until each is answered."""

    name: str
    centred: ClassVar[bool] = False
    """Whether choices that are all 0 make a good first trial."""

    @abstractmethod
    def draw(self, suggest: Suggest) -> Any:
        """A candidate, every choice of it a suggestion."""

    @abstractmethod
    def judge(self, candidate: Any) -> Judged:
        """How good it is; a SeparatrixError where a mechanism has no answer."""

    @abstractmethod
    def finding(self, candidate: Any, shrink: bool) -> SearchFinding:
        """A candidate that was found, made as small as can be, with both verdicts."""
