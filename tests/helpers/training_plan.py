"""Small training runs. `python training_plan.py URL` trains them on two workers."""

from __future__ import annotations

import sys
from typing import Any

from separatrix.core.tensors import Tensor, torch
from separatrix.sweeps.store import open_store
from separatrix.sweeps.training_runs import TrainingRun, training_run
from separatrix.sweeps.work import WorkList
from separatrix.training.tasks import Task, task_named

SIZES: dict[str, Any] = {"width": 8, "batch": 4, "every": 5, "validation": 16, "tests": 32}


def needle(n: int = 8) -> Task:
    return task_named("needle").read({"n": n})


def trained(mechanism: Any = "softmax", seed: int = 0, **given: Any) -> TrainingRun:
    """A run that takes a fraction of a second."""
    options = {name: given.pop(name) for name in ("rate", "start", "pilot", "device") if name in given}
    setting = needle().default_setting(**{**SIZES, "steps": 20, **given})
    return training_run(needle(), mechanism, setting, options.pop("rate", "0.01"), seed, **options)


def runs(steps: int = 20) -> WorkList:
    """Runs of two mechanisms, two seeds, and a rate that diverges."""
    works = [trained(name, seed, steps=steps) for name in ("softmax", "gla") for seed in (0, 1)]
    works.append(trained("identity-features:normalised=no", rate="1e9", warmup=0, steps=steps))
    return WorkList("trained", tuple(("first", work) for work in works))


class _NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, v: Tensor) -> Tensor:
        return v.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        raise RuntimeError("no gradient\nhere")


def broken(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Attention that has no gradient."""
    found: Tensor = _NoGradient.apply(v)
    return found


LONG = 400
"""Steps that take a second."""

if __name__ == "__main__":
    from separatrix.sweeps.executors import LocalExecutor
    from separatrix.sweeps.run import run
    from training_plan import runs as made  # by the name that workers know

    TrainingRun.turn_seconds = 0.1
    run(made(LONG), open_store(sys.argv[1], create=True), LocalExecutor(2))
