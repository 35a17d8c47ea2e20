"""The default report: the experiments that tell most, each a question with an answer known in part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from separatrix.evidence.found import Learned, Part
from separatrix.evidence.predictions import Prediction, predictions
from separatrix.evidence.protocol import Experiment, learned, read_experiment
from separatrix.evidence.runs import Laboratory
from separatrix.parameters import read_words
from separatrix.store import DEFAULT, Address, open_store
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.sweep import executor_for, stop_on_signals

LINEAR = "identity-features:normalised=no"
MQAR = "rates=0.005,0.015"


@dataclass(frozen=True)
class Question:
    """A part of the report: experiments as they are typed after `learn`, without options."""

    name: str
    title: str
    asks: str
    experiments: tuple[str, ...]
    moved: str | None = None


QUESTIONS = (
    Question(
        "needle",
        "One token among n",
        "The needle is the paper's spike made fair and learnable. The best rule is one softmax head, "
        "exactly; the linear kernel has a proved ceiling that sinks as n grows. Does training reach both?",
        (
            f"needle softmax,{LINEAR} n=16 rates=0.01,0.03",
            f"needle softmax,{LINEAR},elu n=64 rates=0.01,0.03",
            f"needle softmax,{LINEAR} n=256 rates=0.01",
        ),
        "n",
    ),
    Question(
        "recall",
        "Recall, over key width and pairs",
        "A state of fixed size against a cache that grows: how many pairs can be recalled through keys of 8 "
        "or 32 numbers, and how much of the gap is in the weights that were found, not in those that exist?",
        (
            f"mqar softmax,elu,delta pairs=8 key_width=8 {MQAR}",
            f"mqar softmax,elu,delta pairs=32 key_width=8 {MQAR}",
            f"mqar softmax,elu,delta pairs=32 key_width=32 {MQAR}",
        ),
    ),
    Question(
        "witness",
        "From a perturbed witness, and from scratch",
        "Weights are written down that solve recall at key width 32. Training from them with noise of their "
        "own size (tuned) against training from scratch: what is between them is optimisation. The "
        "learning rate decides as much as the mechanism: its window and the steps it takes are below.",
        (f"mqar {LINEAR},delta pairs=32 key_width=32 rates=0.002,0.005,0.015",),
    ),
    Question(
        "spike",
        "A fixed direction",
        "The spike along one direction for all samples, there or not. The gap of the linear kernel belongs "
        "to identity features without a nonlinearity before attention: a layer with an MLP before it "
        "closes it.",
        (
            f"spike softmax,{LINEAR},elu rates=0.003,0.01",
            f"spike {LINEAR} depth=2 mlp=2 rates=0.003,0.01",
        ),
    ),
    Question(
        "duplication",
        "Once or twice",
        "The reverse gap: weights that depend on proportions cannot tell a multiset from the same one twice, "
        "a sum can. A first token that is never doubled is enough to close it.",
        (
            f"duplication softmax,elu,{LINEAR} rates=0.003,0.01",
            f"duplication softmax,elu,{LINEAR} first=yes rates=0.003,0.01",
        ),
    ),
    Question(
        "regression",
        "Regression in context",
        "One layer of the linear kernel can do one step of gradient descent, whose error is (d+1)/(n+d+1) "
        "exactly, and no better. What do others do?",
        (f"regression {LINEAR},softmax,elu",),
    ),
    Question(
        "convolution",
        "A short convolution, or two layers",
        "Recall without a convolution: one layer cannot (its ceiling is the floor), two layers can.",
        (
            f"mqar softmax pairs=8 conv=0 {MQAR}",
            f"mqar softmax,elu pairs=8 conv=0 depth=2 {MQAR}",
            f"mqar softmax,elu pairs=8 {MQAR}",
        ),
    ),
)


@dataclass(frozen=True)
class Report:
    """What all experiments found, and how that compares with what the exact side says."""

    parts: tuple[Part, ...]
    predictions: tuple[Prediction, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "parts": [each.as_json() for each in self.parts],
            "predictions": [each.as_json() for each in self.predictions],
            "seconds": self.seconds,
        }


def report(
    store: str | Address = DEFAULT,
    *,
    seeds: int = 6,
    questions: Sequence[Question] = QUESTIONS,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Tell = lambda _: None,
    hear: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Every question, one after the other; what the store has is not computed again.

    **Arguments:**

    - `store`: where runs are kept: a URL or a file.
    - `seeds`: fresh runs of each mechanism in each experiment.
    - `questions`: those to answer.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    - `say`: called with each experiment as it begins.
    """
    start, parts = time.monotonic(), list[Part]()
    with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
        laboratory = Laboratory(open_store(store, create=True, check=True), executor, tell, stop)
        for question in questions:
            found = list[Learned]()
            for typed in question.experiments:
                say(typed)
                found.append(learned(read_typed(typed, seeds), laboratory))
            parts.append(Part(question.name, question.title, question.asks, tuple(found), question.moved))
    every = [each for part in parts for each in part.found]
    return Report(tuple(parts), predictions(every), time.monotonic() - start)


def read_typed(typed: str, seeds: int = 6) -> Experiment:
    """An experiment as it is typed after `learn`."""
    task, mechanisms, *words = typed.split()
    return read_experiment(task, mechanisms, read_words(words), seeds, tuned=1)
