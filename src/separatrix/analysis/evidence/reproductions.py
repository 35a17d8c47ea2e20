"""The reproduction ledger: published numbers beside ours, with a verdict by one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from statistics import fmean
from typing import Any, ClassVar

from separatrix.analysis.evidence.estimates import SeedSummary, sampling_half
from separatrix.analysis.evidence.found import Learned
from separatrix.analysis.evidence.protocol import Experiment, learned, read_experiment
from separatrix.analysis.evidence.published import Exactly, Nothing, Published, Training, published_named
from separatrix.analysis.evidence.runs import Laboratory
from separatrix.core.parameters import UsageError, read_words
from separatrix.core.result import Result, Row
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address, open_store
from separatrix.sweeps.sweep import executor_for, stop_on_signals
from separatrix.training.learning.loop import count_further_tests
from separatrix.training.tasks import Metric, Split


class Verdict(Enum):
    """What our value says of a published one."""

    AGREES = "agrees"
    DIFFERS = "differs"
    OTHER = "other setting"
    NONE = "not computed"


RULE = (
    "A number agrees if the published value lies in our interval, or no further from it than it may be off "
    "as it is printed; else it differs. A number that is computed here agrees if it is the same but for "
    "rounding. Where the question is another one (other data, another score, other layers) both are shown "
    "and nothing is concluded. Our interval covers the median over seeds with 95 %; for six to eight seeds "
    "it reaches from the lowest to the highest, and for fewer too, which cover less. Where the source takes "
    "the best of 3 seeds, ours is the mean over all choices of 3 of our seeds, and the interval reaches from "
    "the worst choice to the best. Where scores are shares, what other test samples would change is added at "
    "both ends, with answers taken for independent. That a model did not learn something here is not that it "
    "cannot."
)
ROUNDING = 1e-12
SAME_QUESTION = {
    *("width", "heads", "key_width", "batch", "steps", "warmup", "rates", "decay", "clip", "every"),
    *("validation", "tests"),
}
"""What may be given and leaves the question the same: sizes of a layer, and its training."""


@dataclass(frozen=True)
class Ours:
    """What was measured or computed here."""

    value: float
    interval: tuple[float, float] | None
    seeds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Reproduction:
    """A published number with ours."""

    published: Published
    ours: Ours | None
    verdict: Verdict
    why: str
    """What led to the verdict, in words."""
    typed: str | None
    """The command that measures it by itself, after `separatrix`."""
    measured_by: str | None
    """The experiment as a command, or what was computed; None where nothing was."""

    def as_json(self) -> dict[str, Any]:
        entry, ours = self.published, self.ours
        return {
            "name": entry.name,
            "source": entry.source,
            "states": entry.states,
            "published": entry.value,
            "accuracy": entry.accuracy,
            "ours": None if ours is None else ours.value,
            "interval": None if ours is None else ours.interval,
            "seeds": [] if ours is None else list(ours.seeds),
            "verdict": self.verdict.value,
            "why": self.why,
            "differs_in": entry.differs or None,
            "command": None if self.typed is None else f"separatrix {self.typed}",
            "measured_by": self.measured_by,
            "cpu_seconds": entry.seconds,
        }


@dataclass(frozen=True, repr=False)
class Ledger(Result):
    """All entries that were asked for."""

    kind: ClassVar[str] = "published"
    entries: tuple[Reproduction, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each verdict."""
        found = Counter(entry.verdict for entry in self.entries)
        return {each.value: found[each] for each in Verdict}

    @property
    def summary(self) -> str:
        """How many numbers came out how."""
        said = ", ".join(f"{count} {word}" for word, count in self.counts.items() if count)
        return f"{len(self.entries)} published numbers: {said}"

    def rows(self) -> list[Row]:
        """One row for each number."""
        return [
            {name: value for name, value in entry.as_json().items() if name not in ("interval", "seeds")}
            for entry in self.entries
        ]

    def as_json(self) -> dict[str, Any]:
        """What `separatrix learn --published --json` prints."""
        return {"rule": RULE, "counts": self.counts, "entries": [entry.as_json() for entry in self.entries]}


def judged(entry: Published, ours: Ours | None, changed: str = "") -> tuple[Verdict, str]:
    """The verdict by `RULE`, and what led to it; `changed` says in what the user made it another question."""
    if ours is None or entry.value is None:
        return Verdict.NONE, entry.how.why if isinstance(entry.how, Nothing) else "every run failed"
    if entry.other or changed:
        return Verdict.OTHER, "; ".join(filter(None, (changed, entry.other)))
    low, high = ours.interval or (ours.value, ours.value)
    off = max(low - entry.value, entry.value - high)
    if isinstance(entry.how, Exactly):
        if off <= entry.accuracy + entry.how.rounding + ROUNDING:
            return Verdict.AGREES, "it is the same but for rounding" if off > 0 else "it is the same"
        return Verdict.DIFFERS, f"it is {off:.2g} from ours; {entry.differs}".strip("; ")
    if off <= 0:
        return Verdict.AGREES, "it lies in our interval"
    if off <= entry.accuracy + ROUNDING:
        return Verdict.AGREES, f"it is {off:.2g} from ours, and may itself be off by {entry.accuracy:g}"
    return Verdict.DIFFERS, f"it is {off:.2g} from our interval; {entry.differs}".strip("; ")


def reproductions(
    names: Sequence[str] = (),
    parameters: Mapping[str, object] | None = None,
    *,
    seeds: int = 6,
    pilots: int = 1,
    store: str | Address = DEFAULT,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Ledger:
    """Published numbers, each measured by the protocol; what the store has is not computed again.

    **Arguments:**

    - `names`: of the entries; all where there is none.
    - `parameters`: of the tasks, models and training, instead of those of the entries: steps=5000.
    - `seeds`, `pilots`: as `learn` takes them.
    - `store`: where runs are kept: a URL or a file.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    - `say`: called with each stage of each experiment as it begins.
    """
    entries = published_named(list(names))
    trained = {entry.how.typed: entry for entry in reversed(entries) if isinstance(entry.how, Training)}
    asked = {typed: _experiment(typed, parameters or {}, seeds, pilots) for typed in reversed(trained)}
    for entry in entries:
        how = entry.how
        if isinstance(how, Training) and how.length not in (None, *asked[how.typed].task.further_tasks()):
            raise UsageError(f"{entry.name} is read off the length {how.length}; have it in also=…")
    found = dict[str, Learned | UsageError]()
    if asked:
        with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
            opened = open_store(store, create=True, check=True)
            laboratory = Laboratory(opened, executor, tell, stop, say)
            for typed, experiment in asked.items():
                try:
                    (found[typed],) = learned([experiment], laboratory, f"learn {typed}")
                except UsageError as error:  # the others go on
                    found[typed] = error
    return Ledger(tuple(entry_of(entry, found, parameters or {}) for entry in entries))


def _experiment(typed: str, given: Mapping[str, object], seeds: int, pilots: int) -> Experiment:
    task, mechanism, *words = typed.split()
    asked = read_experiment(task, mechanism, {**read_words(words), **given}, seeds, pilots)
    return replace(asked, tuned=0)  # nothing is asked of witnesses


def entry_of(
    entry: Published, found: Mapping[str, Learned | UsageError], given: Mapping[str, object]
) -> Reproduction:
    """A published number beside what was learned by the experiment that it is measured by, as typed."""
    ours, changed, failed = None, "", tuple[str, ...]()
    if isinstance(entry.how, Exactly):
        ours = Ours(entry.how.compute(), None)
    if isinstance(entry.how, Training):
        changed = ", ".join(f"{name}={value}" for name, value in given.items() if name not in SAME_QUESTION)
        measured = found[entry.how.typed]
        if isinstance(measured, UsageError):
            failed = (str(measured),)
        else:
            ours, failed = _measured(entry.how, measured), measured.mechanisms[0].failed
    verdict, why = judged(entry, ours, changed and f"asked with {changed}")
    if failed:
        why = f"{why}; {len(failed)} failed: {failed[0]}" if ours else failed[0]
    words = "".join(f" {name}={value}" for name, value in given.items())
    typed = None if isinstance(entry.how, Nothing) else f"learn --published {entry.name}{words}"
    return Reproduction(entry, ours, verdict, why, typed, _measured_by(entry, given))


def _measured_by(entry: Published, given: Mapping[str, object]) -> str | None:
    if isinstance(entry.how, Training):
        task, mechanism, *words = entry.how.typed.split()
        asked = {**read_words(words), **given}
        changed = (f"{name}={value}" for name, value in asked.items())
        return " ".join(("separatrix learn", task, mechanism, *changed))
    return entry.how.said if isinstance(entry.how, Exactly) else None


def _measured(how: Training, found: Learned) -> Ours | None:
    """What is read off an experiment; None where every run failed."""
    task, (evidence,) = found.task, found.mechanisms
    scores = [run.score if how.length is None else run.further[how.length] for run in evidence.runs]
    if not scores:
        return None
    chance = 1 / task.outputs if how.above_chance else 0.0
    shown = [(each - chance) / (1 - chance) for each in scores]
    drawn = _by_samples(how, found, fmean(scores)) / (1 - chance)
    if how.best_of is None:
        summary = SeedSummary.of(shown)
        low, high = summary.interval or (min(shown), max(shown))
        return Ours(summary.median, (low - drawn, high + drawn), tuple(shown))
    best = [
        max(combination, key=lambda score: task.metric.sign * score)
        for combination in combinations(shown, min(how.best_of, len(shown)))
    ]
    return Ours(fmean(best), (min(best) - drawn, max(best) + drawn), tuple(shown))


def _by_samples(how: Training, found: Learned, score: float) -> float:
    """What other test samples would change; all seeds are tested with the same. 0 where it is not a share."""
    task, tests = found.task, found.setting.tests
    if task.metric is not Metric.ACCURACY:
        return 0.0
    if how.length is not None:
        task, tests = task.further_tasks()[how.length], count_further_tests(found.setting, how.length)
    return sampling_half(score, tests * task.samples(1, Split.TEST).targets.shape[1])
