"""The time that training runs take, measured on a few steps before anything is started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from os import cpu_count

import torch

from separatrix.analysis.evidence.protocol import Experiment
from separatrix.analysis.evidence.runs import one_thread
from separatrix.mechanisms import Mechanism
from separatrix.training.learning import build_model
from separatrix.training.learning.batch import MAX_BATCH_TOKENS, SampleBatch, compute_loss, compute_outputs
from separatrix.training.learning.witnesses import WITNESSES
from separatrix.training.tasks import Split

TIMED_STEPS = 2
"""Steps that are timed, after one that is not: the first allocates."""


@dataclass(frozen=True)
class ExpectedTime:
    """The runs of an experiment, and the time that they take."""

    runs: int
    """Of each mechanism, pilots and runs from a witness included."""
    seconds: Mapping[str, float]
    """Of one run to its last step on one core, by mechanism; one that cannot be run is left out."""

    @property
    def core_seconds(self) -> float:
        """All runs one after the other; runs that solve the task end earlier."""
        return self.runs * sum(self.seconds.values())

    def with_processes(self, workers: int | None) -> float:
        """Seconds on so many processes; None for one a core."""
        return self.core_seconds / (workers or cpu_count() or 1)


def expected_time(asked: Experiment) -> ExpectedTime:
    """Time a few steps of each mechanism and extrapolate to all runs of an experiment."""
    rates = len(asked.setting.grid)
    tuned = asked.tuned if asked.task.name in WITNESSES else 0
    runs = (rates * asked.pilots if rates > 1 else 0) + len(asked.seeds) + tuned
    seconds = dict[str, float]()
    for mechanism in asked.mechanisms:
        try:
            seconds[mechanism.spelled] = _run_seconds(asked, mechanism)
        except Exception:
            continue
    return ExpectedTime(runs, seconds)


def _run_seconds(asked: Experiment, mechanism: Mechanism) -> float:
    """Seconds of one run to its last step, with every look at the validation samples and the test."""
    task, setting = asked.task, asked.setting
    with one_thread():
        model, steps = build_model(task, mechanism, setting), list[float]()
        for step in range(1 + TIMED_STEPS):
            start = time.perf_counter()
            batch = SampleBatch.of(task.samples(setting.batch, Split.TRAIN, 0, step))
            compute_loss(compute_outputs(model, batch), batch, task).backward()  # type: ignore[no-untyped-call]
            steps.append(time.perf_counter() - start)
        few = task.samples(max(1, min(MAX_BATCH_TOKENS // task.max_tokens, setting.tests)), Split.TEST)
        start = time.perf_counter()
        with torch.no_grad():
            compute_outputs(model, SampleBatch.of(few))
        read = (time.perf_counter() - start) / len(few)
    looks = setting.steps // setting.every + 1
    return min(steps[1:]) * setting.steps + read * (looks * setting.validation + setting.tests)
