"""Trials of a search, and their log, an Optuna journal from which a stopped search continues.

Questions take turns; a sampler learns from the trials of each. The journal is a file of JSON lines that is
only read as data: Optuna unpickles the snapshots of its Redis backend, but its file backend has none. Other
programs can open it with `optuna.storages.JournalStorage`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import optuna
from optuna.samplers import TPESampler
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, create_trial

from separatrix.analysis.search.inputs import InputFinding, InputQuestion
from separatrix.analysis.search.points import PointFinding, PointQuestion
from separatrix.analysis.search.separation import WORST
from separatrix.core.errors import SeparatrixError, UsageError, one_line
from separatrix.core.files.reading import read_whole
from separatrix.core.files.writing import describe_write_errors, require_writable

PREFIX = "separatrix search: "
"""The start of the study name in every log."""
MAX_LOG_BYTES = 200_000_000
STARTUP_TRIALS = 12
"""Trials of a question that are drawn at random before the sampler learns from them."""
EI_CANDIDATES = 8
"""Candidates of the sampler for every choice; Optuna's default of 24 takes longer."""
Tell = Callable[[int, int, str], None]
SearchQuestion = InputQuestion | PointQuestion
SearchFinding = InputFinding | PointFinding


@dataclass(frozen=True)
class SearchLog:
    """The finished trials of a search, in a file."""

    path: Path
    study: optuna.Study

    def add(self, trial: FrozenTrial) -> None:
        """Append a finished trial."""
        with describe_write_errors(self.path):
            self.study.add_trial(trial)


@contextmanager
def open_log(path: Path, search: str) -> Iterator[SearchLog]:
    """Open or create the log of a search, which is described by its mechanisms, space and seed."""
    require_writable(path)
    if path.exists() and not path.is_file():
        raise UsageError(f"cannot write {path}: it is no ordinary file")
    with describe_write_errors(path):
        file = path.open("ab")
    with file:
        _lock(path, file)
        yield SearchLog(path, _load(path, file, PREFIX + search))


def _load(path: Path, file: BinaryIO, name: str) -> optuna.Study:
    data = read_whole(path, MAX_LOG_BYTES, "the log of a search")
    complete = data.rfind(b"\n") + 1
    with _describe_damage(path):
        # Optuna ignores a damaged last line, and would fail after the next one is appended.
        for line in data[:complete].splitlines() or ([data] if data else []):
            json.loads(line)
        storage = JournalStorage(JournalFileBackend(str(path), lock_obj=_HeldLock()))  # type: ignore[arg-type]
        names = [study.study_name for study in storage.get_all_studies()]
        if data and not (len(names) == 1 and names[0].startswith(PREFIX)):
            raise ValueError("it has no study of a search")
    if names not in ([], [name]):
        log_search, this_search = (text.removeprefix(PREFIX) for text in (names[0], name))
        raise UsageError(f"{path} belongs to another search ({log_search}, not {this_search}); give another file")
    if complete < len(data):  # the last line was cut off when the process was killed
        file.truncate(complete)
    return (optuna.load_study if names else create_study)(study_name=name, storage=storage)


@contextmanager
def _describe_damage(path: Path) -> Iterator[None]:
    """Raise a UsageError for whatever Optuna and the questions raise within the block on a foreign file."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{path} is not the log of a search, or is damaged ({reason}); give another file") from None


class _HeldLock:
    """A lock for Optuna that does nothing: the search holds its own for as long as it runs."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _lock(path: Path, file: BinaryIO) -> None:
    """Reserve the log for this search. The system releases the lock even if the process is killed."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # not on Windows
        return
    except OSError:
        raise UsageError(f"{path} is in use by another search; wait until it ends, or give another file") from None


def create_study(**options: Any) -> optuna.Study:
    """Create a study without the messages that Optuna prints about it."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(direction="maximize", **options)
    finally:
        optuna.logging.set_verbosity(verbosity)


class Trials:
    """The questions, the number of trials of each, and the candidates that answer them."""

    def __init__(self, questions: Iterable[SearchQuestion], log: SearchLog | None, seed: int) -> None:
        self.questions = {question.name: question for question in questions}
        self.log, self.seed = log, seed
        self.counts = dict.fromkeys(self.questions, 0)
        self.answers: dict[str, Any] = {}
        # The reason of every trial in which a mechanism had no answer.
        self.failures: list[str] = []
        # A sampler learns from trials with the same choices, so every question has a study of its own.
        self._studies = {name: create_study() for name in self.questions}
        if log is not None:
            with _describe_damage(log.path):
                for trial in log.study.trials:
                    self._replay(trial)
        for name, question in self.questions.items():
            if question.starts_at_zero and not self.counts[name]:
                self._studies[name].enqueue_trial(_zero_choices(question))

    @property
    def count(self) -> int:
        """The number of all trials."""
        return sum(self.counts.values())

    def _replay(self, trial: FrozenTrial) -> None:
        """Take over a trial of the log; one that answers its question is judged again."""
        question = self.questions[trial.user_attrs["question"]]
        candidate = question.draw(lambda name, low, high: int(trial.params[name]))
        if trial.user_attrs["found"] and not _judge(question, candidate)[1]:
            raise ValueError(f"trial {trial.number + 1} does not answer its question, though it says so")
        self._studies[question.name].add_trial(trial)
        self._take(trial, candidate)

    def _take(self, trial: FrozenTrial, candidate: Any) -> None:
        """Count a trial, and keep its candidate if it is the first answer to its question."""
        name, reason = trial.user_attrs["question"], trial.user_attrs["failed"]
        self.counts[name] += 1
        if trial.user_attrs["found"]:
            self.answers.setdefault(name, candidate)
        if reason is not None:
            self.failures.append(reason)

    def run(self, budget: int, seconds: float | None, tell: Tell) -> tuple[bool, bool]:
        """Try until all questions are answered or the budget is spent.

        Returns whether the search was interrupted, and whether it ran out of time.
        """
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while self.count < budget and len(self.answers) < len(self.questions):
                if end is not None and time.monotonic() >= end:
                    return False, True
                # The unanswered question with the fewest trials, the first of several.
                open_names = (name for name in self.questions if name not in self.answers)
                question = self.questions[min(open_names, key=lambda name: self.counts[name])]
                tell(self.count, budget, question.name)
                self._try(question)
        except KeyboardInterrupt:
            return True, False
        return False, False

    def _try(self, question: SearchQuestion) -> None:
        study, number = self._studies[question.name], self.counts[question.name]
        # A seed for every trial: a search that continues draws as if it had not stopped.
        seed = crc32(f"{self.seed} {question.name} {number}".encode())
        study.sampler = TPESampler(n_startup_trials=STARTUP_TRIALS, n_ei_candidates=EI_CANDIDATES, seed=seed)
        trial = study.ask()
        candidate = question.draw(trial.suggest_int)
        value, is_answer, reason = _judge(question, candidate)
        study.tell(trial, value)
        notes = {"question": question.name, "found": is_answer, "failed": reason}
        choices: Any = {"params": trial.params, "distributions": trial.distributions}
        record = create_trial(**choices, value=float(value), user_attrs=notes)
        if self.log is not None:
            self.log.add(record)
        self._take(record, candidate)

    def build_findings(self, was_interrupted: bool, tell: Tell) -> tuple[list[SearchFinding], bool]:
        """Return the findings, shrunk unless the search was or is now interrupted."""
        findings: list[SearchFinding] = []
        for index, (name, candidate) in enumerate(self.answers.items()):
            tell(index, len(self.answers), f"shrinking {name}")
            try:
                findings.append(self.questions[name].build_finding(candidate, not was_interrupted))
            except KeyboardInterrupt:
                was_interrupted = True
                findings.append(self.questions[name].build_finding(candidate, False))
        return findings, was_interrupted


def _zero_choices(question: SearchQuestion) -> dict[str, int]:
    """Return every choice of the first candidate, all 0: the reference point of a construction."""
    choices: dict[str, int] = {}
    question.draw(lambda name, low, high: choices.setdefault(name, 0))
    return choices


def _judge(question: SearchQuestion, candidate: Any) -> tuple[float, bool, str | None]:
    """Return the objective, whether it is an answer, and the reason if a mechanism has no answer."""
    try:
        return *question.judge(candidate), None
    except SeparatrixError as error:
        return WORST, False, one_line(error)
    except Exception as error:  # a user's mechanism may raise anything
        return WORST, False, f"{type(error).__name__}: {one_line(error)}"
