"""The default report: the experiments that tell most, each a question with an answer known in part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from separatrix.analysis.evidence.found import Part
from separatrix.analysis.evidence.predictions import Prediction, predictions
from separatrix.analysis.evidence.protocol import Experiment, learned, read_experiment
from separatrix.analysis.evidence.runs import Laboratory
from separatrix.core.parameters import read_words
from separatrix.sweeps.progress import Tell
from separatrix.sweeps.store import DEFAULT, Address, open_store
from separatrix.sweeps.sweep import executor_for, stop_on_signals

LINEAR = "identity-features:normalised=no"
MQAR, RATES = "rates=0.005,0.015", "rates=0.003,0.01"
AT_WIDTH_32 = f"mqar {LINEAR},delta pairs=32 key_width=32 rates=0.002,0.005,0.015"


@dataclass(frozen=True)
class Question:
    """A part of the report: experiments as they are typed after `learn`, without options."""

    name: str
    title: str
    asks: str
    experiments: tuple[str, ...]
    moved: str | None = None
    tuned: int = 1
    """Runs from each witness, with noise."""
    about_rates: bool = False


QUESTIONS = (
    Question(
        "needle",
        "One token among n",
        "One of n tokens stands out along a direction that the last token names; what is its mark? This "
        "is the paper's spike, made fair and learnable. The best rule is one softmax head, exactly; "
        f"{LINEAR}, linear attention that adds up <q,k> v, has a proved ceiling that sinks as n grows. "
        "Does training reach both?",
        (
            f"needle softmax,{LINEAR},elu n=16 {RATES}",
            f"needle softmax,{LINEAR},elu n=64 {RATES}",
            f"needle softmax,{LINEAR} n=256 {RATES}",
        ),
        "n",
    ),
    Question(
        "recall",
        "Recall, over key width and pairs",
        "Pairs of keys and values are read, then every key is asked. How many pairs come through keys of "
        "8 or 32 numbers, where one mechanism has a cache that grows and others a state of fixed size? "
        "The floor is the commonest value in context, which looks like partial learning.",
        (
            f"mqar softmax,elu,delta pairs=8 key_width=8 {MQAR}",
            f"mqar softmax,elu,delta pairs=8 key_width=32 {MQAR}",
            f"mqar softmax,elu,delta pairs=32 key_width=8 {MQAR}",
            f"mqar softmax,elu,delta pairs=32 key_width=32 {MQAR}",
        ),
    ),
    Question(
        "witness",
        "From a perturbed witness, and from scratch",
        "Weights are written down that solve recall of 32 pairs at key width 32. Half of their own size "
        "is added to them as noise, and they are trained (tuned), beside training from scratch: where "
        "tuned runs end higher, what lies between is optimisation, and not what the mechanism can "
        "express.",
        (AT_WIDTH_32,),
        tuned=3,
    ),
    Question(
        "spike",
        "A fixed direction",
        "Does one token stand out along a direction that never changes? Linear attention on linear maps "
        "of the tokens has a proved ceiling. Features that are not linear (elu), or a layer with an MLP "
        "before attention (depth=2), are not bound by it: do they get past it?",
        (
            f"spike softmax,{LINEAR},elu {RATES}",
            f"spike {LINEAR} depth=2 mlp=2 {RATES}",
        ),
    ),
    Question(
        "duplication",
        "Once or twice",
        "The reverse gap. Is every symbol there once, or twice? One layer whose weights depend on "
        "proportions alone gets the same from both (proved), and a sum does not. With a first token that "
        "is never doubled (first=yes) the proof does not hold: is the gap closed?",
        (
            f"duplication softmax,elu,{LINEAR} rates=0.01,0.03",
            f"duplication softmax,elu,{LINEAR} first=yes rates=0.01,0.03",
        ),
    ),
    Question(
        "regression",
        "Regression in context",
        "n = 20 examples of a linear function in d = 5 dimensions, then a point to say its value at; "
        "lower is better. One layer of linear attention can do one step of gradient descent, whose "
        "expected error is (d+1)/(n+d+1) = 0.2308, and no better (proved). What do others do?",
        (f"regression {LINEAR},softmax,elu",),
    ),
    Question(
        "convolution",
        "A short convolution, or two layers",
        "Recall of 8 pairs without a convolution (conv=0): one layer that does not see the order gets no "
        "more than the commonest value in context (proved). Is a second layer enough, or a convolution "
        "over three tokens?",
        (
            f"mqar softmax,elu pairs=8 key_width=32 conv=0 {MQAR}",
            f"mqar softmax,elu pairs=8 key_width=32 conv=0 depth=2 {MQAR}",
            f"mqar softmax,elu pairs=8 key_width=32 {MQAR}",
        ),
    ),
    Question(
        "rates",
        "Learning rates, and steps until solved",
        "The runs of recall at key width 32 again: what each learning rate did on the pilot seed, and "
        "after how many steps the fresh seeds had solved the task. A comparison at one rate for all "
        "compares their windows.",
        (AT_WIDTH_32,),
        tuned=3,
        about_rates=True,
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
            "parts": [part.as_json() for part in self.parts],
            "predictions": [prediction.as_json() for prediction in self.predictions],
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
    """Every question, the pilots of all before the seeds; what the store has is not computed again.

    **Arguments:**

    - `store`: where runs are kept: a URL or a file.
    - `seeds`: fresh runs of each mechanism in each experiment.
    - `questions`: those to answer.
    - `workers`, `scheduler`: how many processes here, or the address of a Dask cluster.
    - `tell`, `hear`: called with the progress, and when a signal asks to stop.
    - `say`: called with what begins, pilots or seeds.
    """
    start = time.monotonic()
    asked = [
        [read_typed(typed, seeds, question.tuned) for typed in question.experiments] for question in questions
    ]
    with stop_on_signals(hear) as stop, closing(executor_for(workers, scheduler)) as executor:
        laboratory = Laboratory(open_store(store, create=True, check=True), executor, tell, stop, say)
        found = iter(learned([each for some in asked for each in some], laboratory, "learn"))
        parts = tuple(
            Part(
                each.name,
                each.title,
                each.asks,
                tuple(islice(found, len(some))),
                each.moved,
                each.about_rates,
            )
            for each, some in zip(questions, asked, strict=True)
        )
    every = [each for part in parts for each in part.found]
    return Report(parts, predictions(every), time.monotonic() - start)


def read_typed(typed: str, seeds: int = 6, tuned: int = 1) -> Experiment:
    """An experiment as it is typed after `learn`."""
    task, mechanisms, *words = typed.split()
    return read_experiment(task, mechanisms, read_words(words), seeds, tuned=tuned)
