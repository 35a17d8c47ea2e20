"""Questions about constructions: at which parameters X distinguishes and Y fails (P <= delta)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from separatrix.analysis.search.shrink import ROUND_COUNTS, shrink
from separatrix.analysis.search.space import Suggest
from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.constructions.lengths import admissible
from separatrix.core.documents import Document, Hidden
from separatrix.core.numbers import format_exact
from separatrix.exact.engines import Sampling, solve
from separatrix.exact.verdicts import DELTA
from separatrix.exact.verdicts.words import Word, separates, word_for
from separatrix.mechanisms import Mechanism

FACTORS = tuple(Fraction(x) for x in ("1", "1/2", "2", "1/4", "4"))
LENGTH_FACTORS = tuple(Fraction(x) for x in ("1", "1/10", "10", "100", "1000"))
"""Factors for the parameters of the reference point, and for n."""
SAMPLING = Sampling(decide=(DELTA, 1 - DELTA))
Values = dict[str, object]


@dataclass(frozen=True)
class FindingVerdict(Document):
    """The verdict on one mechanism, in short."""

    verdict: Word
    distinguish: float
    interval: tuple[float, float]
    margin: float
    engine: str
    evidence: str


@dataclass(frozen=True)
class PointFinding(Document):
    """A point of a construction at which X tells the labels apart and Y does not."""

    kind: Literal["construction"]
    family: str
    """The name of the construction."""
    sentence: str
    """The title of the construction."""
    shrunk: bool
    """Whether no single step of the shrinker makes it smaller."""
    construction: str
    parameters: Mapping[str, int | str]
    x: FindingVerdict
    y: FindingVerdict
    size: Hidden[tuple[Any, ...]]
    """The order of findings: those of inputs come first, then small ones."""

    def command(self, mechanism: Mechanism) -> str:
        """Return the command that computes a verdict again."""
        words = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"separatrix verdict {self.construction} {mechanism.spelled} {words}"


class PointQuestion:
    """One construction, around its reference point."""

    starts_at_zero = True

    def __init__(self, x: Mechanism, y: Mechanism, kind: type[Construction], changes: Values) -> None:
        self.x, self.y, self.kind = x, y, kind
        self.centre: Values = {**kind.example, **changes}
        self.name = ", ".join([kind.name, *map(str, changes.values())])

    def draw(self, suggest: Suggest) -> Values:
        """Draw a point: the reference point with its numbers multiplied, and an admissible n."""
        values: Values = {}
        for name, value in self.centre.items():
            number = _to_number(value)
            if number is None:
                values[name] = value
                continue
            factors = LENGTH_FACTORS if name == "n" else FACTORS
            number *= factors[suggest(name, 0, len(factors) - 1)]
            values[name] = max(1, round(number)) if isinstance(value, int) else format_exact(number)
        return admissible(self.kind, values)

    def judge(self, candidate: Values) -> tuple[float, bool]:
        """Return the difference of both probabilities, and whether the point answers the question."""
        point = self.kind.read(candidate)
        x, y = (_decide(point, mechanism) for mechanism in (self.x, self.y))
        return x.distinguish - y.distinguish, separates(x.verdict, y.verdict)

    def build_finding(self, candidate: Values, shrinks: bool) -> PointFinding:
        """Return the finding of a point, with smaller whole numbers and rounder others if it `shrinks`."""
        small = shrink(candidate, self._steps, self._size, self._holds) if shrinks else candidate
        point = self.kind.read(small)
        place, verdicts = (point.name, point.parameters.as_json()), (_decide(point, self.x), _decide(point, self.y))
        size = (1, *_point_size(point))
        return PointFinding("construction", point.name, point.title, shrinks, *place, *verdicts, size)

    def _steps(self, values: Values) -> Iterator[Values]:
        for name, value in values.items():
            number = _to_number(value)
            numbers: list[object] = []
            if isinstance(value, int):
                numbers = [count for count in ROUND_COUNTS if count < value]
            elif number is not None:
                numbers = [format_exact(Fraction(f"{float(number):.{digits}g}")) for digits in (1, 2)]
            yield from (admissible(self.kind, {**values, name: rounder}) for rounder in numbers)

    def _size(self, values: Values) -> tuple[float, ...]:
        try:
            return _point_size(self.kind.read(values))
        except Exception:  # parameters that the construction refuses are no step
            return (float("inf"),)

    def _holds(self, values: Values) -> bool:
        try:
            return self.judge(values)[1]
        except Exception:  # no step leads to a point on which a mechanism has no answer or raises
            return False


def _decide(point: Construction, mechanism: Mechanism) -> FindingVerdict:
    outcome = solve(point, mechanism, "auto", SAMPLING)
    word, numbers = word_for(outcome, point.m, DELTA), (outcome.distinguish, outcome.interval, outcome.margin)
    return FindingVerdict(word, *numbers, outcome.engine, outcome.evidence)


def _to_number(value: object) -> Fraction | None:
    try:
        return Fraction(str(value))
    except ValueError:
        return None


def _point_size(point: Construction) -> tuple[int, int, int]:
    """Return n, the sum of the other whole numbers, and the digits of all parameters."""
    parameters = point.parameters.as_json()
    counts = [x for name, x in parameters.items() if isinstance(x, int) and name != "n"]
    return point.n, sum(counts), sum(len(str(x)) for x in parameters.values())


def point_questions(x: Mechanism, y: Mechanism) -> Iterator[PointQuestion]:
    """Yield every construction, in each of the forms that tables show."""
    for kind in CONSTRUCTIONS.values():
        for changes in kind.variants:
            yield PointQuestion(x, y, kind, changes)
