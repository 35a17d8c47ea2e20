"""Trials: questions take turns, a sampler learns from the trials of each, what is found is shrunk."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.trial import create_trial

from separatrix.analysis.search._base import Judged, SearchFinding, SearchQuestion
from separatrix.analysis.search.separation import WORST
from separatrix.analysis.search.trial_log import Log, Trial
from separatrix.core.errors import one_line
from separatrix.core.parameters import SeparatrixError, UsageError

STARTUP = 12
"""Trials of a question that are drawn at random before the sampler has anything to learn from."""
CANDIDATES = 8
"""Of which the sampler takes the best, for every choice; its own 24 take longer."""
Tell = Callable[[int, int, str], None]


class Trials:
    """The questions, what was tried for each, and what answered it."""

    def __init__(self, questions: Iterable[SearchQuestion], log: Log, seed: int) -> None:
        self.questions = {question.name: question for question in questions}
        self.log, self.seed = log, seed
        self.tried = dict.fromkeys(self.questions, 0)
        self.found: dict[str, Any] = {}
        self._studies = {name: _study() for name in self.questions}
        for number, trial in zip(log.lines, log.trials, strict=True):
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

    def _next(self) -> SearchQuestion:
        """The open question that was tried least; the order of questions settles ties."""
        return min(
            (each for name, each in self.questions.items() if name not in self.found),
            key=lambda each: self.tried[each.name],
        )

    def _try(self, question: SearchQuestion) -> None:
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

    def findings(self, interrupted: bool, tell: Tell) -> tuple[list[SearchFinding], bool]:
        """What was found, shrunk unless interrupted."""
        found: list[SearchFinding] = []
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


def _zeros(question: SearchQuestion) -> dict[str, int]:
    """Every choice of the first candidate, all 0."""
    choices: dict[str, int] = {}
    question.draw(lambda name, low, high: choices.setdefault(name, 0))
    return choices


def _judged(question: SearchQuestion, candidate: Any) -> tuple[Judged, str | None]:
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
