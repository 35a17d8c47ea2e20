"""A kind of work that is nothing like a verdict: a few steps of gradient descent, with all that a run keeps.

`python toy_training.py URL LOG` trains a plan of them on two workers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from separatrix.sweeps.code import hash_code
from separatrix.sweeps.store import Answer, File, open_store
from separatrix.sweeps.store.files import make_curves_file
from separatrix.sweeps.work import ReferenceDefaults, WorkItem

EVERY = 5
"""Steps between two checkpoints."""


@dataclass(frozen=True)
class Training(WorkItem):
    """Least squares of a seed, at a learning rate."""

    kind = "training"
    threads = 2
    turn_seconds = 0.2
    has_checkpoints = True
    mechanism: str
    rate: str
    steps: int
    seed: int
    code: str
    pause: float = 0.0
    """Seconds a step; neither this nor the log determines the result."""
    log: str = ""

    def __str__(self) -> str:
        return f"the training of {self.mechanism}"

    def identity(self) -> Sequence[Any]:
        return self.mechanism, self.rate, self.steps, self.seed

    @property
    def cost_key(self) -> tuple[str, ...]:
        return self.kind, str(self.steps)

    def columns(self) -> dict[str, Any]:
        parameters = {"task": "least-squares", "rate": self.rate, "budget": str(self.steps)}
        return {"mechanism": self.mechanism, "parameters": parameters, "seed": self.seed}

    def current_code(self) -> str:
        return hash_code("toy_training")

    def compute(self, checkpoint: bytes | None) -> Iterator[bytes | Answer]:
        if self.mechanism == "broken":
            raise ArithmeticError("no gradient")
        if self.mechanism == "impolite":
            yield Answer({"status": "mine"})
        if self.mechanism == "large":
            yield Answer({}, (File("weights.npz", bytes(9000)),))
        chance = np.random.default_rng(self.seed)
        a, b, x, losses = chance.normal(size=(8, 3)), chance.normal(size=8), np.zeros(3), list[float]()
        if checkpoint is not None:
            with np.load(BytesIO(checkpoint), allow_pickle=False) as state:
                x, losses = state["x"], state["losses"].tolist()
        self._say("from", len(losses))
        while len(losses) < self.steps:
            error = a @ x - b
            losses.append(float(error @ error))
            x = x - float(self.rate) * (a.T @ error)
            self._say("step", len(losses))
            time.sleep(self.pause)
            if len(losses) % EVERY == 0:
                yield _arrays(x=x, losses=np.array(losses))
        if self.mechanism == "killer":
            sys.exit("killed")
        word = "solved" if losses[-1] < losses[0] else "diverged"
        found = {"loss": losses[-1], "last": len(losses), "word": word, "threads": torch.get_num_threads()}
        curves = make_curves_file((step, "loss", loss) for step, loss in enumerate(losses))
        yield Answer(found, (curves, File("weights.npz", _arrays(x=x))))

    def _say(self, word: str, number: int) -> None:
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{self.seed} {word} {number}\n")


def _arrays(**named: Any) -> bytes:
    made = BytesIO()
    np.savez(made, **named)
    return made.getvalue()


@dataclass(frozen=True)
class Toys:
    """A plan of them."""

    works: tuple[WorkItem, ...]
    name: str = "toys"
    text: str = "by hand"
    threads: int = 2
    reference_defaults: ReferenceDefaults = field(default_factory=dict)

    @property
    def key(self) -> str:
        return "toys"

    @property
    def count(self) -> int:
        return len(self.works)

    def __iter__(self) -> Iterator[tuple[str, WorkItem]]:
        return (("trained", work) for work in self.works)


def toys(log: str = "", pause: float = 0.0, steps: int = 40, seeds: int = 3) -> Toys:
    """Runs of several seeds at two learning rates, one of which diverges."""
    code = hash_code("toy_training")
    rates = ("0.02", "2")
    return Toys(
        tuple(Training("softmax", rate, steps, seed, code, pause, log) for rate in rates for seed in range(seeds))
    )


if __name__ == "__main__":
    from separatrix.sweeps.executors import LocalExecutor
    from separatrix.sweeps.run import run
    from toy_training import toys as made  # by the name that workers know

    run(made(sys.argv[2], 0.02), open_store(sys.argv[1], create=True), LocalExecutor(2))
