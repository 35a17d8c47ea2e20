"""The search: questions take turns, a sampler learns from the trials of each, what is found is shrunk."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.trial import create_trial

from separatrix.contract._base import one_line
from separatrix.contract.load import mechanism_from
from separatrix.mechanisms import Mechanism
from separatrix.parameters import SeparatrixError, UsageError, nearest
from separatrix.searches._base import Finding, Judged, Question
from separatrix.searches.inputs import input_questions
from separatrix.searches.log import Header, Log, Trial
from separatrix.searches.points import point_questions
from separatrix.searches.separation import DROWNED, NEGLIGIBLE, TELLS, WORST

SPACES = ("inputs", "constructions", "both")
BUDGET = 300
MOST_TRIALS = 10**6
MOST_SEED = 2**63
STARTUP = 12
"""Trials of a question that are drawn at random before the sampler has anything to learn from."""
CANDIDATES = 8
"""Of which the sampler takes the best, for every choice; its own 24 take longer and find no more."""
THRESHOLDS = (
    f"tells apart: outputs differ by {TELLS.p}/{TELLS.q} of their scale or more; equal: not at all, or in "
    f"balls and float64 by at most 1e-{len(str(NEGLIGIBLE.q)) - 1} of it; drowned: {DROWNED} times less"
)
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Search:
    """What was found, and after how much looking."""

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
    findings: tuple[Finding, ...]
    unanswered: tuple[str, ...]
    """The questions in which nothing was found."""
    interrupted: bool
    out_of_time: bool

    @property
    def found(self) -> bool:
        """Whether anything was."""
        return bool(self.findings)

    @property
    def caution(self) -> str:
        """What finding nothing means."""
        if not self.unanswered:
            return ""
        where = f" for {'; '.join(self.unanswered)}" if self.found else ""
        return f"nothing found{where} in {self.trials} trials; this proves nothing"

    def as_json(self) -> dict[str, Any]:
        """What `separatrix search --json` prints, and `--check` reads."""
        return {
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
            "found": self.found,
            "thresholds": THRESHOLDS,
            "findings": [finding.as_json() for finding in self.findings],
            "unanswered": list(self.unanswered),
            "caution": self.caution,
        }


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
    """Look for instances on which x tells two labels apart and y does not, and shrink what is found.

    The same seed finds the same, whether or not it was stopped and went on from its `study` file.

    >>> found = search("identity-features:normalised=no", "softmax", budget=8)
    >>> found.findings[0].family, found.findings[0].sentence
    ('duplication', 'only counts differ, each 2 times as large in D1')
    """
    one, other = mechanism_from(x), mechanism_from(y)
    _check(one, other, budget, seconds, seed, space)
    path = None if study is None else Path(study)
    log = Log(path, Header(one.spelled, other.spelled, space, seed))
    running = _Running(questions(one, other, space), log, seed)
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
    )


def _distinct(findings: list[Finding]) -> tuple[Finding, ...]:
    """The smallest first; two questions may have shrunk to one answer."""
    found: list[tuple[Any, Finding]] = []
    for finding in sorted(findings, key=lambda finding: finding.size):
        if (told := finding.as_json()) not in (other for other, _ in found):
            found.append((told, finding))
    return tuple(finding for _, finding in found)


def questions(x: Mechanism, y: Mechanism, space: str) -> list[Question]:
    """All that is asked in a space."""
    found: list[Question] = []
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
    if space not in SPACES:
        known = ", ".join(SPACES)
        raise UsageError(f"there is no space {space}{nearest(space, list(SPACES))}; there are: {known}")


class _Running:
    """The questions, what was tried for each, and what answered it."""

    def __init__(self, questions: Iterable[Question], log: Log, seed: int) -> None:
        self.questions = {question.name: question for question in questions}
        self.log, self.seed = log, seed
        self.tried = dict.fromkeys(self.questions, 0)
        self.found: dict[str, Any] = {}
        self._studies = {name: _study() for name in self.questions}
        for number, trial in enumerate(log.trials, 2):
            self._replay(trial, f"{log.path}, line {number}")
        for name, question in self.questions.items():
            if question.centred and not self.tried[name]:
                self._studies[name].enqueue_trial(_zeros(question))

    def _replay(self, trial: Trial, where: str) -> None:
        """Take in a trial from the log; one that is said to have found something is judged again."""
        question = self.questions.get(trial.question)
        if question is None:
            raise UsageError(f"{where}: this search does not ask about {trial.question}; give another file")
        recorded = _Recorded(trial.choices, where)
        candidate = question.draw(recorded)
        recorded.finish()
        if trial.found and not _judged(question, candidate)[0].found:
            raise UsageError(f"{where}: this trial found nothing, though it says so; give another file")
        self._take(trial, candidate)
        self._studies[trial.question].add_trial(
            create_trial(params=trial.choices, distributions=recorded.distributions, value=trial.value)
        )

    def _take(self, trial: Trial, candidate: Any) -> None:
        self.tried[trial.question] += 1
        if trial.found:
            self.found.setdefault(trial.question, candidate)

    def go(self, budget: int, seconds: float | None, tell: Tell) -> tuple[bool, bool]:
        """Trials until all is found or the budget spent; whether it was interrupted, or ran out of time."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while len(self.log.trials) < budget and len(self.found) < len(self.questions):
                if end is not None and time.monotonic() >= end:
                    return False, True
                question = self._next()
                tell(len(self.log.trials), budget, question.name)
                self._try(question)
        except KeyboardInterrupt:
            return True, False
        return False, False

    def _next(self) -> Question:
        """The open question that was tried least; the order of questions settles ties."""
        return min(
            (each for name, each in self.questions.items() if name not in self.found),
            key=lambda each: self.tried[each.name],
        )

    def _try(self, question: Question) -> None:
        study, number = self._studies[question.name], self.tried[question.name]
        mixed = zlib.crc32(f"{self.seed} {question.name} {number}".encode())
        study.sampler = TPESampler(n_startup_trials=STARTUP, n_ei_candidates=CANDIDATES, seed=mixed)
        trial = study.ask()
        candidate = question.draw(trial.suggest_int)
        judged, failed = _judged(question, candidate)
        study.tell(trial, judged.value)
        done = Trial(question.name, dict(trial.params), float(judged.value), judged.found, failed)
        self.log.add(done)
        self._take(done, candidate)

    def findings(self, interrupted: bool, tell: Tell) -> tuple[list[Finding], bool]:
        """What was found, shrunk unless interrupted."""
        found: list[Finding] = []
        for place, (name, candidate) in enumerate(self.found.items()):
            tell(place, len(self.found), f"shrinking {name}")
            try:
                found.append(self.questions[name].finding(candidate, shrink=not interrupted))
            except KeyboardInterrupt:
                interrupted = True
                found.append(self.questions[name].finding(candidate, shrink=False))
        return found, interrupted


class _Recorded:
    """Choices read from a log, handed out again by name; each must be one that could have been made."""

    def __init__(self, choices: dict[str, int], where: str) -> None:
        self.choices, self.where = choices, where
        self.distributions: dict[str, BaseDistribution] = {}

    def __call__(self, name: str, low: int, high: int) -> int:
        choice = self.choices.get(name)
        if choice is None or not low <= choice <= high:
            raise UsageError(f"{self.where}: {name}={choice} is no choice of this search; give another file")
        self.distributions[name] = IntDistribution(low, high)
        return choice

    def finish(self) -> None:
        """Refuse choices that nothing asked for."""
        for name in self.choices.keys() - self.distributions.keys():
            raise UsageError(f"{self.where}: {name} is no choice of this search; give another file")


def _zeros(question: Question) -> dict[str, int]:
    """Every choice of the first candidate, all 0."""
    choices: dict[str, int] = {}
    question.draw(lambda name, low, high: choices.setdefault(name, 0))
    return choices


def _judged(question: Question, candidate: Any) -> tuple[Judged, str | None]:
    """How good a candidate is; the worst where a mechanism has no answer, with the reason."""
    try:
        return question.judge(candidate), None
    except SeparatrixError as reason:
        return Judged(WORST, False), one_line(reason)
    except Exception as error:  # whatever a stranger's mechanism raises is no answer
        return Judged(WORST, False), f"{type(error).__name__}: {one_line(error)}"


def _study() -> optuna.Study:
    """A study in memory, made without a word."""
    loud = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(direction="maximize")
    finally:
        optuna.logging.set_verbosity(loud)
