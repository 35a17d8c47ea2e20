"""The expected time of training runs, measured on a few steps before anything is started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from os import cpu_count

from separatrix.analysis.evidence.protocol import Experiment
from separatrix.core.tensors import one_thread, torch
from separatrix.mechanisms import Mechanism
from separatrix.training.learning import build_model
from separatrix.training.learning.batch import MAX_BATCH_TOKENS, SampleBatch, compute_loss, compute_outputs
from separatrix.training.learning.witnesses import WITNESSES
from separatrix.training.tasks import Split

TIMED_STEPS = 2
"""Steps that are timed, after one that is not: the first allocates."""


@dataclass(frozen=True)
class ExpectedTime:
    """The number of runs of an experiment, and the time that they take."""

    runs: int
    """The runs of each mechanism, including pilots and runs from hand-written weights."""
    seconds: Mapping[str, float]
    """The seconds of one run to its last step on one core, by mechanism, without those that cannot run."""

    def with_processes(self, workers: int | None) -> float:
        """Return the seconds of all runs on this many processes; None for one per core.

        Runs that solve the task end earlier.
        """
        return self.runs * sum(self.seconds.values()) / (workers or cpu_count() or 1)


def expect_time(experiment: Experiment) -> ExpectedTime:
    """Time a few steps of each mechanism and extrapolate to all runs of an experiment."""
    rates = len(experiment.setting.grid)
    tuned_runs = experiment.tuned if experiment.task.name in WITNESSES else 0
    runs = (rates * experiment.pilots if rates > 1 else 0) + len(experiment.seeds) + tuned_runs
    seconds = dict[str, float]()
    for mechanism in experiment.mechanisms:
        try:
            seconds[mechanism.spelled] = _run_seconds(experiment, mechanism)
        except Exception:  # the runs will report the error
            continue
    return ExpectedTime(runs, seconds)


def _run_seconds(experiment: Experiment, mechanism: Mechanism) -> float:
    """Return the seconds of one run to its last step, with all validations and the test."""
    task, setting = experiment.task, experiment.setting
    with one_thread():
        model, steps = build_model(task, mechanism, setting), list[float]()
        for step in range(1 + TIMED_STEPS):
            start = time.perf_counter()
            batch = SampleBatch.of(task.samples(setting.batch, Split.TRAIN, 0, step))
            compute_loss(compute_outputs(model, batch), batch, task).backward()  # type: ignore[no-untyped-call]
            steps.append(time.perf_counter() - start)
        samples = task.samples(max(1, min(MAX_BATCH_TOKENS // task.max_tokens, setting.tests)), Split.TEST)
        start = time.perf_counter()
        with torch.no_grad():
            compute_outputs(model, SampleBatch.of(samples))
        seconds_per_sample = (time.perf_counter() - start) / len(samples)
    validations = setting.steps // setting.every + 1
    samples_read = validations * setting.validation + setting.tests
    # The minimum: other processes can only make a step slower.
    return min(steps[1:]) * setting.steps + seconds_per_sample * samples_read
