"""The search: what is asked for, and what was found after how much looking."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from separatrix.analysis.search._base import SearchFinding, SearchQuestion
from separatrix.analysis.search.inputs import input_questions
from separatrix.analysis.search.points import point_questions
from separatrix.analysis.search.separation import DROWNED, NEGLIGIBLE, TELLS
from separatrix.analysis.search.trial_log import Header, Log
from separatrix.analysis.search.trials import Tell, Trials
from separatrix.core.parameters import UsageError, require_known
from separatrix.core.result import Result, Row
from separatrix.mechanisms import Mechanism
from separatrix.mechanisms.load import mechanism_from

if TYPE_CHECKING:
    from separatrix.core.schemas import mechanisms as documents

SPACES = ("inputs", "constructions", "both")
BUDGET = 300
MOST_TRIALS = 10**6
MOST_SEED = 2**63
THRESHOLDS = (
    f"tells apart: outputs differ by {TELLS.p}/{TELLS.q} of their scale or more; equal: proved not to; "
    f"near: by at most 1e-{len(str(NEGLIGIBLE.q)) - 1} of it, not proved equal; drowned: {DROWNED} times less"
)


@dataclass(frozen=True, repr=False)
class Search(Result):
    """What was found, and after how much looking."""

    kind: ClassVar[str] = "search"
    columns: ClassVar[tuple[str, ...]] = ("family", "sentence", "shrunk")
    x: Mechanism
    y: Mechanism
    space: str
    seed: int
    budget: int
    trials: int
    failed: int
    """Trials in which a mechanism had no answer."""
    reason: str | None
    """Why, the first time."""
    findings: tuple[SearchFinding, ...]
    unanswered: tuple[str, ...]
    """The questions in which nothing was found."""
    interrupted: bool
    out_of_time: bool
    damaged: tuple[int, ...] = ()
    """Lines of the log that are not what was written, and were left out."""

    @property
    def found(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    @property
    def caution(self) -> str:
        """What finding nothing means."""
        if not self.unanswered:
            return ""
        where = f" for {'; '.join(self.unanswered)}" if self.found else ""
        return f"nothing found{where} in {self.trials} trials; this proves nothing"

    @property
    def summary(self) -> str:
        """What was found, or that finding nothing proves nothing."""
        found = ", ".join(dict.fromkeys(finding.family for finding in self.findings))
        said = f"{len(self.findings)} found in {self.trials} trials ({found})" if self.found else self.caution
        return f"what {self.x.spelled} tells apart and {self.y.spelled} does not: {said}"

    def rows(self) -> list[Row]:
        """One row for each finding."""
        return [
            {"family": finding.family, "sentence": finding.sentence, "shrunk": finding.shrunk}
            for finding in self.findings
        ]

    def as_json(self) -> documents.Search:
        """What `separatrix search --json` prints, and `--check` reads."""
        return cast(
            "documents.Search",
            {
                "x": self.x.spelled,
                "y": self.y.spelled,
                "space": self.space,
                "seed": self.seed,
                "budget": self.budget,
                "trials": self.trials,
                "failed": self.failed,
                "reason": self.reason,
                "interrupted": self.interrupted,
                "out_of_time": self.out_of_time,
                "damaged": list(self.damaged),
                "found": self.found,
                "thresholds": THRESHOLDS,
                "findings": [finding.as_json() for finding in self.findings],
                "unanswered": list(self.unanswered),
                "caution": self.caution,
            },
        )


def search(
    x: Any,
    y: Any,
    *,
    budget: int = BUDGET,
    seconds: float | None = None,
    seed: int = 0,
    space: str = "inputs",
    study: Path | str | None = None,
    tell: Tell = lambda done, total, what: None,
) -> Search:
    """Look for instances on which one mechanism tells two labels apart and another does not, and shrink them.

    **Arguments:**

    - `x`, `y`: the mechanism that tells, and the one that does not, as for `verdict`.
    - `budget`, `seconds`: the most trials, and the most time.
    - `seed`: the same one finds the same, whether or not the search was stopped and went on.
    - `space`: `"inputs"`, `"constructions"` or `"both"`.
    - `study`: a file from which a stopped search goes on.
    - `tell`: hears of each step.

    >>> found = search("identity-features:normalised=no", "softmax", budget=10)
    >>> [each.sentence for each in found.findings if each.family == "duplication"]
    ['only counts differ, each 2 times as large in D1']
    """
    one, other = mechanism_from(x), mechanism_from(y)
    _check(one, other, budget, seconds, seed, space)
    path = None if study is None else Path(study)
    with closing(Log(path, Header(one.spelled, other.spelled, space, seed))) as log:
        running = Trials(questions(one, other, space), log, seed)
        interrupted, out_of_time = running.go(budget, seconds, tell)
        findings, interrupted = running.findings(interrupted, tell)
    failures = [trial.failed for trial in log.trials if trial.failed is not None]
    return Search(
        one,
        other,
        space,
        seed,
        budget,
        len(log.trials),
        len(failures),
        failures[0] if failures else None,
        _distinct(findings),
        tuple(name for name in running.questions if name not in running.found),
        interrupted,
        out_of_time,
        tuple(log.damaged),
    )


def _distinct(findings: list[SearchFinding]) -> tuple[SearchFinding, ...]:
    """Distinct findings, the smallest first; two questions may have shrunk to one answer."""
    found: list[tuple[Any, SearchFinding]] = []
    for finding in sorted(findings, key=lambda finding: finding.size):
        if (told := finding.as_json()) not in (other for other, _ in found):
            found.append((told, finding))
    return tuple(finding for _, finding in found)


def questions(x: Mechanism, y: Mechanism, space: str) -> list[SearchQuestion]:
    """Every question of a space."""
    found: list[SearchQuestion] = []
    if space in ("inputs", "both"):
        found += input_questions(x, y)
    if space in ("constructions", "both"):
        found += point_questions(x, y)
    return found


def _check(x: Mechanism, y: Mechanism, budget: int, seconds: float | None, seed: int, space: str) -> None:
    if x.spelled == y.spelled:
        raise UsageError(f"X and Y are both {x.spelled}; nothing tells apart what it does not tell apart")
    if not 1 <= budget <= MOST_TRIALS:
        raise UsageError(f"budget={budget} is out of range; it must be 1 to {MOST_TRIALS:,} trials")
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(f"seconds={seconds} is out of range; it must be above 0")
    if not 0 <= seed < MOST_SEED:
        raise UsageError(f"seed={seed} is out of range; seeds start at 0")
    require_known("space", space, SPACES)
