"""Where a mechanism stands on each construction: verdict, growth of the margin, and where it goes blind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.analysis.cards.blindness import Blindness, blindness
from separatrix.analysis.cards.margin_growth import Growth, growth_of_margin
from separatrix.analysis.cards.outcomes import found_at
from separatrix.analysis.cards.rescue import Rescue
from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.core.errors import raised
from separatrix.core.parameters import SeparatrixError
from separatrix.exact.engines import Outcome
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.mechanisms import Mechanism

EVIDENCE = {"certified": "certified", "closed": "closed"}
"""What stands behind an answer, by the engine that gave it; every other engine samples."""


def kind_of_evidence(outcome: Outcome) -> str:
    """Certified, exact or sampled."""
    return EVIDENCE.get(outcome.engine, "sampled")


@dataclass(frozen=True)
class Standing:
    """The standing on one construction."""

    name: str
    verdict: Verdict
    growth: Growth
    blind: Blindness
    rescue: Rescue | None = None
    """Who tells apart what the fixed reader does not, where that was asked."""

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return self.verdict.word

    @property
    def evidence(self) -> str:
        """The kind of evidence: certified, exact or sampled."""
        return kind_of_evidence(self.verdict.outcome)

    def as_json(self) -> dict[str, Any]:
        """The standing as `assess --json` prints it."""
        shown, law = self.verdict.as_json(), self.growth.law
        return {
            **{name: shown[name] for name in ("construction", "parameters", "engine", "evidence", "verdict")},
            **{name: shown[name] for name in ("distinguish", "interval", "margin", "bits")},
            "kind": self.evidence,
            "margin_exponent": None if law is None else law.exponent,
            "margin_exponent_interval": None if law is None else list(law.interval),
            "margin_is_power": None if law is None else law.power_law,
            "margin_law": self.growth.why if law is None else law.name,
            "margin_lengths": list(self.growth.lengths),
            "blind_from_n": self.blind.start,
            "blind_from_n_is": "exact" if self.blind.exact else "sampled",
            "blind_searched_to": self.blind.searched_to,
        }


@dataclass(frozen=True)
class Unanswered:
    """A construction on which the mechanism has no standing, and why."""

    name: str
    why: str
    broke: bool
    """Whether the mechanism itself broke, rather than an engine refusing."""
    word: ClassVar[str] = "none"

    def as_json(self) -> dict[str, Any]:
        """The reason as `assess --json` prints it."""
        return {"verdict": self.word, "evidence": self.why}


def points() -> dict[str, Construction]:
    """The reference point of every construction, by the name tables show: `spike, identity`."""
    found = {}
    for kind in CONSTRUCTIONS.values():
        for changes in kind.variants:
            name = ", ".join([kind.name, *map(str, changes.values())])
            found[name] = kind.read({**kind.example, **changes})
    return found


def standings(
    mechanism: Mechanism, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Standing | Unanswered]:
    """The standing on every construction; `tell` hears of each before it starts."""
    for name, point in points().items():
        tell(name)
        yield standing(name, point, mechanism)


def verdict_at(point: Construction, mechanism: Mechanism) -> Verdict:
    """The verdict at one point, by the strongest engine that applies."""
    return Verdict(point, mechanism, found_at(point, mechanism, (DELTA, 1 - DELTA)), DELTA)


def word_at(point: Construction, mechanism: Mechanism) -> str:
    """The verdict at one point in one word; "none" where there is no answer."""
    try:
        return verdict_at(point, mechanism).word
    except Exception:  # whatever a stranger's mechanism raises: it has no answer
        return Unanswered.word


def standing(name: str, point: Construction, mechanism: Mechanism) -> Standing | Unanswered:
    """The standing at one point, by the strongest engine that applies."""
    try:
        verdict = verdict_at(point, mechanism)
        return Standing(name, verdict, growth_of_margin(point, mechanism), blindness(verdict))
    except SeparatrixError as refusal:
        return Unanswered(name, str(refusal), broke=False)
    except Exception as error:  # whatever a stranger's mechanism raises is an answer, too
        return Unanswered(name, f"it {raised(error)}", broke=True)
