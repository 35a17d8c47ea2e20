"""Measure published numbers by the protocol, for the reproduction ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from separatrix.analysis.evidence.estimates import SeedSummary, accuracy_half_width
from separatrix.analysis.evidence.experiments import read_command
from separatrix.analysis.evidence.protocol import run_experiments
from separatrix.analysis.evidence.published import (
    OurNumber,
    PublishedNumber,
    ReproducedNumber,
    ReproductionLedger,
    build_reproduction,
    published_named,
)
from separatrix.analysis.evidence.runs import open_session
from separatrix.analysis.evidence.training_result import TrainingResult
from separatrix.core.parameters import UsageError
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address
from separatrix.training.learning.loop import count_further_tests
from separatrix.training.tasks import Metric, Split

SAME_QUESTION = {
    *("width", "heads", "key_width", "batch", "steps", "warmup", "rates", "decay", "clip", "every"),
    *("validation", "tests"),
}
"""Parameters that leave the question the same: sizes of a layer, and its training."""
Results = Mapping[str, TrainingResult | UsageError]
"""The results of experiments by their command, or errors."""


def measure_published(
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
) -> ReproductionLedger:
    """Measure published numbers by the protocol; runs in the store are not computed again.

    **Arguments:**

    - `names`: the entries (default: all).
    - `parameters`: parameters of tasks, models and training that replace those of the entries: steps=5000.
    - `seeds`, `pilots`: as for `learn`.
    - `store`: URL or file of the store.
    - `workers`, `scheduler`: number of local processes, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal requests to stop.
    - `say`: called with each stage of each experiment as it begins.
    """
    entries, parameters = published_named(names), parameters or {}
    commands = dict.fromkeys(entry.learn for entry in entries if entry.learn)
    # Published numbers are not about hand-written weights, so no run begins with these.
    experiments = {command: read_command(command, seeds, 0, pilots, parameters) for command in commands}
    for entry in entries:
        if entry.length is not None and entry.length not in experiments[entry.learn].task.further_tasks():
            raise UsageError(f"{entry.name} is read off the length {entry.length}; have it in also=…")
    results = dict[str, TrainingResult | UsageError]()
    if experiments:
        with open_session(store, workers, scheduler, tell, hear, say) as session:
            for command, experiment in experiments.items():
                try:
                    (results[command],) = run_experiments([experiment], session, f"learn {command}")
                except UsageError as error:  # the others go on
                    results[command] = error
    return ReproductionLedger(tuple(compare_entry(entry, results, parameters) for entry in entries))


def compare_entry(entry: PublishedNumber, results: Results, parameters: Mapping[str, object]) -> ReproducedNumber:
    """Put a published number beside the result of its experiment, or beside its computation."""
    if not entry.learn:
        our_number = None if entry.compute is None else OurNumber(entry.compute())
        return build_reproduction(entry, our_number, (), parameters, "")
    changes = ", ".join(f"{name}={value}" for name, value in parameters.items() if name not in SAME_QUESTION)
    result = results[entry.learn]
    if isinstance(result, UsageError):
        return build_reproduction(entry, None, [str(result)], parameters, changes)
    return build_reproduction(entry, _read_off(entry, result), result.mechanisms[0].failed, parameters, changes)


def _read_off(entry: PublishedNumber, result: TrainingResult) -> OurNumber | None:
    """Return the number that an experiment gives for an entry; None if every run failed."""
    task, (evidence,) = result.task, result.mechanisms
    scores = [run.score if entry.length is None else run.further[entry.length] for run in evidence.runs]
    if not scores:
        return None
    chance = 1 / task.outputs if entry.above_chance else 0.0
    values = tuple((score - chance) / (1 - chance) for score in scores)
    error = _sampling_error(entry, result, fmean(scores)) / (1 - chance)
    if entry.best_of is None:
        summary = SeedSummary(values)
        low, high = summary.interval or (min(values), max(values))
        return OurNumber(summary.median, (low - error, high + error), values)
    # The mean over all choices, because the seeds that the source happened to draw are not known.
    choices, pick = combinations(values, min(entry.best_of, len(values))), max if task.metric.sign > 0 else min
    best = [pick(choice) for choice in choices]
    return OurNumber(fmean(best), (min(best) - error, max(best) + error), values)


def _sampling_error(entry: PublishedNumber, result: TrainingResult, score: float) -> float:
    """Return the error of a score due to the test samples, which all seeds share; 0 if it is not a share."""
    task, tests = result.task, result.setting.tests
    if task.metric is not Metric.ACCURACY:
        return 0.0
    if entry.length is not None:
        task, tests = task.further_tasks()[entry.length], count_further_tests(result.setting, entry.length)
    return accuracy_half_width(score, tests * task.samples(1, Split.TEST).targets.shape[1])
