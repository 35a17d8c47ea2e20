"""Training: what the trainer costs beside the model, and what a second worker brings."""

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
from separatrix.sweeps.local import LocalExecutor
from separatrix.sweeps.run import run
from separatrix.sweeps.store import frame, open_store
from separatrix.sweeps.store.filters import read_filter
from separatrix.sweeps.training_runs import training_run
from separatrix.sweeps.work import Batch, WorkList
from separatrix.training.learning import RunConfig, build_model, train
from separatrix.training.learning.loop import BETAS, scheduled_rate
from separatrix.training.tasks import Split, task_named

STEPS, RUNS = 60, 6
CASES = (("needle", "softmax"), ("mqar", "softmax"), ("mqar", "delta"))


def measure() -> Iterator[Measurement]:
    """All lines of this file."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for task, mechanism in CASES:
        what = f"training {mechanism} on {task}: tokens/s against a bare loop"
        yield at_least(what, partial(trainer_speed, task, mechanism), "x", 0.9)
    torch.set_num_threads(before)
    with tempfile.TemporaryDirectory() as folder:
        yield at_least(
            "training runs on two workers against one",
            lambda: swept(1, Path(folder) / "1.db") / swept(2, Path(folder) / "2.db"),
            "x",
            1.8,
        )


def trainer_speed(name: str, mechanism: str) -> float:
    """Tokens a second of `train` against those of a bare loop, both of the same model to the same weights.

    It looks at little validation data, and seldom: a look is no overhead, but what was asked for.
    """
    task = task_named(name).read()
    asked = RunConfig(
        task, mechanism, task.default_setting(steps=STEPS, every=STEPS // 2, validation=8), 0.001, 0
    )
    ours, theirs = train(asked), bare(asked)
    for one, other in zip(ours.model.parameters(), theirs.parameters(), strict=True):
        require(torch.allclose(one, other, rtol=1e-3, atol=1e-5), f"{mechanism} on {name}: other weights")
    return ratio(lambda: bare(asked), lambda: train(asked), repeats=5)


def bare(asked: RunConfig) -> Model:
    """The same training, with nothing but the steps."""
    task, setting = asked.task, asked.setting
    model = build_model(task, asked.mechanism, setting, asked.seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=BETAS, weight_decay=float(setting.decay))
    for step in range(setting.steps):
        samples = task.samples(setting.batch, Split.TRAIN, asked.seed, step)
        optimizer.param_groups[0]["lr"] = scheduled_rate(step, asked.rate, setting)
        first = int(samples.positions.min())  # no token before is asked
        said, _ = model(torch.from_numpy(samples.inputs), last=samples.inputs.shape[1] - first)
        places = torch.from_numpy(samples.positions - first)[..., None].expand(-1, -1, said.shape[-1])
        targets = torch.from_numpy(samples.targets).flatten()
        loss = cross_entropy(said.gather(1, places).flatten(0, 1), targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(model.parameters(), float(setting.clip))
        optimizer.step()
    return model


def swept(workers: int, file: Path) -> float:
    """Seconds of a few runs of a second or more, once workers have begun."""
    task = task_named("mqar").read()
    setting = task.default_setting(steps=4 * STEPS, every=STEPS, validation=8)
    works = [training_run(task, "softmax", setting, "0.001", seed, pilot=True) for seed in range(RUNS)]
    store, executor = open_store(str(file), create=True), LocalExecutor(workers)
    try:
        for _ in range(2 * workers):
            executor.submit(Batch((works[0],)))
        while executor.busy:
            executor.wait(1.0)
        start = time.perf_counter()
        done = run(WorkList("runs", tuple(("runs", work) for work in works)), store, executor)
        wall = time.perf_counter() - start
    finally:
        executor.close()
    kept = frame(store, read_filter({}, kind="training"))
    require(done.done == len(kept) == RUNS, "some runs are missing")
    return wall
