"""Questions about constructions: at which parameters X distinguishes and Y fails (P <= delta)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.analysis.search._base import Judged, SearchFinding, SearchQuestion
from separatrix.analysis.search.shrink import ROUND_COUNTS
from separatrix.analysis.search.space import Suggest
from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.numbers import format_exact
from separatrix.exact.engines import Sampling, solve
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.words import separates
from separatrix.mechanisms import Mechanism

FACTORS = tuple(Fraction(x) for x in ("1", "1/2", "2", "1/4", "4"))
LENGTHS = tuple(Fraction(x) for x in ("1", "1/10", "10", "100", "1000"))
"""What the parameters of the reference point are multiplied by, and what n is."""
SAMPLING = Sampling(decide=(DELTA, 1 - DELTA))
Values = dict[str, object]


@dataclass(frozen=True)
class PointFinding(SearchFinding):
    """A construction at one parameter point, with both verdicts."""

    kind: ClassVar[str] = "construction"
    x: Verdict
    y: Verdict
    shrunk: bool

    @property
    def family(self) -> str:
        return self.x.construction.name

    @property
    def sentence(self) -> str:
        return self.x.construction.title

    @property
    def size(self) -> tuple[Any, ...]:
        return (1, *_size(self.x.construction))

    def commands(self) -> list[str]:
        """The commands that give both verdicts again."""
        words = " ".join(f"{name}={value}" for name, value in self.x.construction.parameters.shown().items())
        return [
            f"separatrix verdict {each.construction.name} {each.mechanism.spelled} {words}"
            for each in (self.x, self.y)
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "family": self.family,
            "sentence": self.sentence,
            "shrunk": self.shrunk,
            "construction": self.family,
            "parameters": self.x.construction.parameters.shown(),
            "x": _verdict_json(self.x),
            "y": _verdict_json(self.y),
        }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    outcome = verdict.outcome
    return {
        "verdict": verdict.word,
        "distinguish": outcome.distinguish,
        "interval": list(outcome.interval),
        "margin": outcome.margin,
        "engine": outcome.engine,
        "evidence": outcome.evidence,
    }


class PointQuestion(SearchQuestion):
    """One construction, around its reference point."""

    centred = True

    def __init__(self, x: Mechanism, y: Mechanism, kind: type[Construction], changes: Values) -> None:
        self.x, self.y, self.kind = x, y, kind
        self.centre: Values = {**kind.example, **changes}
        self.name = ", ".join([kind.name, *map(str, changes.values())])

    def draw(self, suggest: Suggest) -> Values:
        """The reference point with its numbers multiplied; n is brought to a length there is."""
        found: Values = {}
        for name, value in self.centre.items():
            number = _number(value)
            if number is None:
                found[name] = value
                continue
            factors = LENGTHS if name == "n" else FACTORS
            number *= factors[suggest(name, 0, len(factors) - 1)]
            found[name] = max(1, round(number)) if isinstance(value, int) else format_exact(number)
        return admissible(self.kind, found)

    def judge(self, candidate: Values) -> Judged:
        one, other = self._verdicts(candidate)
        value = one.outcome.distinguish - other.outcome.distinguish
        return Judged(value, separates(one.word, other.word))

    def _verdicts(self, values: Values) -> tuple[Verdict, Verdict]:
        point = self.kind.read(values)
        one, other = (
            Verdict(point, each, solve(point, each, "auto", SAMPLING), DELTA) for each in (self.x, self.y)
        )
        return one, other

    def finding(self, candidate: Values, shrink: bool) -> PointFinding:
        small = self._shrunk(candidate) if shrink else candidate
        return PointFinding(*self._verdicts(small), shrink)

    def _shrunk(self, values: Values) -> Values:
        """Smaller whole numbers and rounder others, for as long as both verdicts stay."""
        while True:
            limit = _size(self.kind.read(values))
            step = next((each for each in self._steps(values) if self._holds(each, limit)), None)
            if step is None:
                return values
            values = step

    def _steps(self, values: Values) -> Iterator[Values]:
        for name, value in values.items():
            number = _number(value)
            if isinstance(value, int):
                tries: list[object] = [each for each in ROUND_COUNTS if each < value]
            elif number is not None:
                tries = [format_exact(Fraction(f"{float(number):.{digits}g}")) for digits in (1, 2)]
            else:
                tries = []
            yield from (admissible(self.kind, {**values, name: attempt}) for attempt in tries)

    def _holds(self, values: Values, limit: tuple[Any, ...]) -> bool:
        try:
            return _size(self.kind.read(values)) < limit and self.judge(values).found
        except Exception:  # where a mechanism has no answer, or a stranger's raises, there is no step
            return False


def _number(value: object) -> Fraction | None:
    try:
        return Fraction(str(value))
    except ValueError:
        return None


def _size(point: Construction) -> tuple[int, int, int]:
    """n, the other whole numbers, and the digits of the rest."""
    shown = point.parameters.shown()
    whole = [x for name, x in shown.items() if isinstance(x, int) and name != "n"]
    return point.n, sum(whole), sum(len(str(x)) for x in shown.values())


def point_questions(x: Mechanism, y: Mechanism) -> Iterator[PointQuestion]:
    """Every construction, in each of the forms that tables show."""
    for kind in CONSTRUCTIONS.values():
        for changes in kind.variants:
            yield PointQuestion(x, y, kind, changes)
