"""Training: the overhead of the trainer over the model, and the speed-up by a second worker."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from benchmarks._base import Measurement, at_least, ratio, require
from separatrix.layers import Model
from separatrix.sweeps.executors import LocalExecutor
from separatrix.sweeps.run import run
from separatrix.sweeps.store import frame, open_store
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.training_runs import training_run
from separatrix.sweeps.work import WorkBatch, WorkList
from separatrix.training.learning import RunConfig, build_model, train
from separatrix.training.learning.loop import BETAS, scheduled_rate
from separatrix.training.tasks import Split, task_named

STEPS, RUNS = 60, 6
CASES = (("needle", "softmax"), ("mqar", "softmax"), ("mqar", "delta"))


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for task, mechanism in CASES:
        title = f"training {mechanism} on {task}: tokens/s against a bare loop"
        yield at_least(title, partial(trainer_speed, task, mechanism), "x", 0.9)
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        yield at_least(
            "training runs on two workers against one",
            lambda: time_runs(1, Path(folder) / "1.db") / time_runs(2, Path(folder) / "2.db"),
            "x",
            1.8,
        )


def trainer_speed(name: str, mechanism: str) -> float:
    """Return the speed of `train` relative to a bare loop that reaches the same weights.

    There are few and small evaluations: they are part of the work, not overhead.
    """
    task = task_named(name).read()
    setting = task.default_setting(steps=STEPS, every=STEPS // 2, validation=8)
    config = RunConfig(task, mechanism, setting, 0.001, 0)
    trained, reference = train(config).model, train_bare(config)
    for weight, expected in zip(trained.parameters(), reference.parameters(), strict=True):
        agrees = torch.allclose(weight, expected, rtol=1e-3, atol=1e-5)
        require(agrees, f"{mechanism} on {name}: other weights")
    return ratio(lambda: train_bare(config), lambda: train(config), repeats=5)


def train_bare(config: RunConfig) -> Model:
    """Train the same model with nothing but the steps."""
    task, setting = config.task, config.setting
    model = build_model(task, config.mechanism, setting, config.seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=BETAS, weight_decay=float(setting.decay))
    for step in range(setting.steps):
        samples = task.samples(setting.batch, Split.TRAIN, config.seed, step)
        optimizer.param_groups[0]["lr"] = scheduled_rate(step, config.rate, setting)
        first = int(samples.positions.min())  # no earlier token is scored
        outputs, _ = model(torch.from_numpy(samples.inputs), last=samples.inputs.shape[1] - first)
        positions = torch.from_numpy(samples.positions - first)[..., None].expand(-1, -1, outputs.shape[-1])
        targets = torch.from_numpy(samples.targets).flatten()
        loss = cross_entropy(outputs.gather(1, positions).flatten(0, 1), targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(model.parameters(), float(setting.clip))
        optimizer.step()
    return model


def time_runs(workers: int, file: Path) -> float:
    """Return the seconds of a few runs of a second or more, after the workers have started."""
    task = task_named("mqar").read()
    setting = task.default_setting(steps=4 * STEPS, every=STEPS, validation=8)
    works = [training_run(task, "softmax", setting, "0.001", seed, pilot=True) for seed in range(RUNS)]
    store, executor = open_store(str(file), create=True), LocalExecutor(workers)
    try:
        # Starting processes and importing torch would otherwise dominate the time of the first batches.
        for _ in range(2 * workers):
            executor.submit(WorkBatch((works[0],)))
        while executor.is_busy:
            executor.wait(1.0)
        start = time.perf_counter()
        summary = run(WorkList("runs", tuple(("runs", work) for work in works)), store, executor)
        seconds = time.perf_counter() - start
    finally:
        executor.close()
    rows = frame(store, read_filter({}, kind="training"))
    require(summary.done == len(rows) == RUNS, "some runs are missing")
    return seconds
