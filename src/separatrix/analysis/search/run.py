"""Search for instances on which one mechanism tells the labels apart and another does not; check findings."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from separatrix.analysis.search.inputs import InputFinding, input_questions
from separatrix.analysis.search.instance import read_instance
from separatrix.analysis.search.points import PointFinding, PointQuestion, point_questions
from separatrix.analysis.search.separation import DROWNED, MIN_SEPARATION, NEGLIGIBLE
from separatrix.analysis.search.trials import SearchFinding, SearchQuestion, Tell, Trials, open_log
from separatrix.constructions import construction_named
from separatrix.core.documents import Document, shown
from separatrix.core.files.reading import read_whole
from separatrix.core.parameters import UsageError, require_known
from separatrix.core.result import Result, Row
from separatrix.exact.verdicts.words import separates
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.mechanisms.load import mechanism_from

SPACES = ("inputs", "constructions", "both")
BUDGET = 300
MAX_TRIALS = 10**6
MAX_FINDINGS_BYTES = 10_000_000
THRESHOLDS = (
    f"tells apart: outputs differ by {MIN_SEPARATION} of their scale or more; equal: proved not to; "
    f"near: by at most 1e-{len(str(NEGLIGIBLE.q)) - 1} of it, not proved equal; drowned: {DROWNED} times less"
)


@dataclass(frozen=True, repr=False)
class Search(Result):
    """The findings of a search, and its effort."""

    kind: ClassVar[str] = "search"
    columns: ClassVar[tuple[str, ...]] = ("family", "sentence", "shrunk")
    x: Mechanism
    """The mechanism that tells the labels apart."""
    y: Mechanism
    """The mechanism that does not."""
    space: str
    seed: int
    budget: int
    trials: int
    failed: int
    """The number of trials in which a mechanism had no answer."""
    reason: str | None
    """Why the first of these failed."""
    findings: tuple[InputFinding | PointFinding, ...]
    unanswered: tuple[str, ...]
    """The questions without a finding."""
    interrupted: bool
    out_of_time: bool

    @shown
    def found(self) -> bool:
        """Whether there is a finding."""
        return bool(self.findings)

    @shown
    def thresholds(self) -> str:
        """The definitions of the terms for findings."""
        return THRESHOLDS

    @shown
    def caution(self) -> str:
        """A caution that questions without a finding prove nothing; empty if all have one."""
        if not self.unanswered:
            return ""
        questions = f" for {'; '.join(self.unanswered)}" if self.found else ""
        return f"nothing found{questions} in {self.trials} trials; this proves nothing"

    @property
    def summary(self) -> str:
        """The families of the findings, or the caution."""
        families = ", ".join(dict.fromkeys(finding.family for finding in self.findings))
        result = f"{len(self.findings)} found in {self.trials} trials ({families})" if families else self.caution
        return f"{self.x.spelled} tells apart, {self.y.spelled} does not: {result}"

    def rows(self) -> list[Row]:
        """One row for each finding."""
        return [{name: getattr(finding, name) for name in self.columns} for finding in self.findings]


def search(
    x: Any,
    y: Any,
    *,
    budget: int = BUDGET,
    seconds: float | None = None,
    seed: int = 0,
    space: str = "inputs",
    study: Path | str | None = None,
    tell: Tell = lambda *_: None,
) -> Search:
    """Search for instances on which one mechanism tells the labels apart and another does not.

    **Arguments:**

    - `x`, `y`: the mechanism that tells the labels apart, and the one that does not, as for `verdict`.
    - `budget`, `seconds`: the largest number of trials, and the longest time.
    - `seed`: equal seeds give equal findings, whether or not the search was stopped and continued.
    - `space`: `"inputs"`, `"constructions"` or `"both"`.
    - `study`: a file from which a stopped search continues.
    - `tell`: called with the number of trials, the budget, and the current question.

    >>> result = search("identity-features:normalised=no", "softmax", budget=10)
    >>> [finding.sentence for finding in result.findings if finding.family == "duplication"]
    ['only counts differ, each 2 times as large in D1']
    """
    x, y = mechanism_from(x), mechanism_from(y)
    if x.spelled == y.spelled:
        raise UsageError(f"X and Y are both {x.spelled}; a search needs two different mechanisms")
    if not 1 <= budget <= MAX_TRIALS:
        raise UsageError(f"budget={budget} is out of range; it must be 1 to {MAX_TRIALS:,} trials")
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(f"seconds={seconds} is out of range; it must be above 0")
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed={seed} is out of range; seeds start at 0")
    require_known("space", space, SPACES)
    questions: list[SearchQuestion] = []
    if space in ("inputs", "both"):
        questions += input_questions(x, y)
    if space in ("constructions", "both"):
        questions += point_questions(x, y)
    description = f"{x.spelled} over {y.spelled}, {space}, seed {seed}"
    with nullcontext() if study is None else open_log(Path(study), description) as log:
        trials = Trials(questions, log, seed)
        was_interrupted, out_of_time = trials.run(budget, seconds, tell)
        findings, was_interrupted = trials.build_findings(was_interrupted, tell)
    return Search(
        x=x,
        y=y,
        space=space,
        seed=seed,
        budget=budget,
        trials=trials.count,
        failed=len(trials.failures),
        reason=next(iter(trials.failures), None),
        findings=_drop_duplicates(findings),
        unanswered=tuple(name for name in trials.questions if name not in trials.answers),
        interrupted=was_interrupted,
        out_of_time=out_of_time,
    )


def _drop_duplicates(findings: list[SearchFinding]) -> tuple[SearchFinding, ...]:
    """Return distinct findings, the smallest first; findings of two questions may shrink to the same one."""
    distinct: list[SearchFinding] = []
    for finding in sorted(findings, key=lambda finding: finding.size):
        if finding.as_json() not in [earlier.as_json() for earlier in distinct]:
            distinct.append(finding)
    return tuple(distinct)


@dataclass(frozen=True)
class CheckedInput(InputFinding):
    """A finding about inputs, computed again."""

    holds: bool


@dataclass(frozen=True)
class CheckedPoint(PointFinding):
    """A finding about a construction, computed again."""

    holds: bool


@dataclass(frozen=True)
class FindingsCheck(Document):
    """The findings of a file, computed again, and whether each still separates X from Y in the recorded way."""

    file: Path
    x: Mechanism
    y: Mechanism
    findings: tuple[CheckedInput | CheckedPoint, ...]

    @shown
    def holds(self) -> bool:
        """Whether all findings still separate X from Y."""
        return all(finding.holds for finding in self.findings)


def check_findings(path: Path, x: str | None = None, y: str | None = None) -> FindingsCheck:
    """Evaluate the findings that `search --out` wrote.

    Nothing in the file is executed: mechanisms of the user's own must be named again by the user.
    """
    data = _read(path)
    mechanisms = _find_mechanism(data["x"], x, path), _find_mechanism(data["y"], y, path)
    try:
        findings = tuple(_check_finding(finding, *mechanisms) for finding in data["findings"])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if not findings:
        raise UsageError(f"{path} holds no finding, so there is nothing to check")
    return FindingsCheck(path, *mechanisms, findings)


def _read(path: Path) -> dict[str, Any]:
    text = read_whole(path, MAX_FINDINGS_BYTES, "the findings of a search")
    try:
        data = json.loads(text)
        names = isinstance(data["x"], str) and isinstance(data["y"], str)
        if not names or not isinstance(data["findings"], list):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{path} does not hold the findings of a search; write them with `out`") from None
    return dict(data)


def _find_mechanism(spelling: str, name: str | None, path: Path) -> Mechanism:
    if name is None:
        if spelling.partition(":")[0] not in MECHANISMS:
            raise UsageError(f"{path} is about {spelling[:80]}; name both mechanisms on the command line too")
        return mechanism_from(spelling)
    mechanism = mechanism_from(name)
    if mechanism.spelled != spelling:
        raise UsageError(f"{path} is about {spelling[:80]}, not {mechanism.spelled}")
    return mechanism


def _check_finding(data: Any, x: Mechanism, y: Mechanism) -> CheckedInput | CheckedPoint:
    kind = data.get("kind") if isinstance(data, dict) else None
    shrunk = kind is not None and data.get("shrunk") is True
    if kind == "inputs":
        finding = InputFinding.build(x, y, read_instance(data.get("instance")), shrunk)
        holds = finding.way is not None and finding.way == data.get("way")
        return CheckedInput(**vars(finding), holds=holds)
    if kind != "construction":
        raise UsageError("a finding is of kind inputs or construction")
    name, parameters = data.get("construction"), data.get("parameters")
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise UsageError("a finding of kind construction has a construction and parameters")
    point = PointQuestion(x, y, construction_named(name), {}).build_finding(parameters, shrinks=False)
    holds = separates(point.x.verdict, point.y.verdict)
    return CheckedPoint(**{**vars(point), "shrunk": shrunk}, holds=holds)
