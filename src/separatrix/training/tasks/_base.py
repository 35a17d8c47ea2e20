"""What a task is: data to learn from, the best score anything can have on it, and what a shortcut gets."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from separatrix.core.judgement import Margin, error_margin, share_margin
from separatrix.core.parameters import Parameters, Parametrised, UsageError
from separatrix.core.tensors import Tensor, torch
from separatrix.training.tasks.setting import Setting

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from separatrix.mechanisms import Mechanism


class Split(Enum):
    """What samples are for; one never has a sample of another."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2


class Answers(Enum):
    """What is asked for at a place, and how answers are scored."""

    CLASSES = "the share of right answers"
    NUMBERS = "the squared error, as a share of that of the answer 0"
    BITS = "the bits that the right answer takes, at the mean"

    @property
    def sign(self) -> int:
        """1 where a higher score is better, -1 where a lower one is."""
        return 1 if self is Answers.CLASSES else -1


@dataclass(frozen=True)
class Samples:
    """Inputs, the places whose outputs are read, and what they should say."""

    inputs: NDArray[Any]
    """Symbols (samples, tokens), or numbers (samples, tokens, features)."""
    places: NDArray[np.int64]
    """(samples, asked): the tokens that answer."""
    targets: NDArray[Any]
    """(samples, asked): a class each, or a number each."""
    present: NDArray[np.bool_] | None = None
    """(samples, tokens): which tokens there are, where lengths differ."""
    hidden: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """What was drawn on the way, by which the best answer is known; a model never sees it."""

    def __len__(self) -> int:
        return len(self.inputs)

    def chosen(self, rows: NDArray[Any]) -> Samples:
        """Some of the samples."""
        present = None if self.present is None else self.present[rows]
        hidden = {name: each[rows] for name, each in self.hidden.items()}
        return Samples(self.inputs[rows], self.places[rows], self.targets[rows], present, hidden)


@dataclass(frozen=True)
class Bound:
    """A score that something has on samples, or has at best, and how it is known."""

    score: float
    how: str
    exact: bool = True
    """Whether it is what the rule scores on these very samples, or follows from a formula or by counting."""
    sampled: bool = False
    """Whether it estimates an expectation: on other samples it would be another number."""
    universal: bool = False
    """Of a shortcut, whether the models of every proved ceiling of the task can take it."""


@dataclass(frozen=True)
class ProvedCeiling:
    """The best that one mechanism can do, by a proof, and the class of models that the proof is about."""

    score: float
    """In expectation over samples. On a finite sample a model of the class may do a little better."""
    models: str
    proof: str

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise ValueError(f"a proved ceiling must be a finite number, not {self.score}")


class Task(Parametrised, ABC):
    """Samples with a known ceiling and floor. One file each; it registers itself by being there.

    Samples of a seed are the same on every machine: NumPy's generators draw them, by split, seed and step.
    """

    title: ClassVar[str]
    """One line for lists."""
    description: ClassVar[str]
    provenance: ClassVar[str]
    example: ClassVar[Mapping[str, object]] = {}
    """Parameters of a small instance, for tests."""
    setting: ClassVar[Mapping[str, object]] = {}
    """What it is learned with, where that differs from `Setting`."""
    answers: ClassVar[Answers] = Answers.CLASSES
    tolerance: ClassVar[float] = 0.01
    """A run has solved the task when it scores within this of the ceiling, on validation samples."""
    asks_length: ClassVar[bool] = False
    """Whether the number of tokens is what is asked for. In every other task it tells nothing."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @classmethod
    def read(cls, values: Mapping[str, object] | None = None) -> Task:
        """The task at these parameters, or a UsageError of one line."""
        return cls(cls.schema.read(values or {}))

    @classmethod
    def default_setting(cls, **given: object) -> Setting:
        """What it is learned with unless given otherwise."""
        return Setting.read({**cls.setting, **given})

    @property
    def spelled(self) -> str:
        """The name, with the parameters that differ from their defaults."""
        chosen = " ".join(f"{name}={value}" for name, value in self.parameters.chosen().items())
        return f"{self.name} {chosen}".strip()

    @property
    def vocabulary(self) -> int | None:
        """How many symbols there are; None where inputs are numbers."""
        return None

    @property
    def features(self) -> int | None:
        """How wide inputs are that are numbers; None where they are symbols."""
        return None

    @property
    def bits(self) -> float:
        """The logarithm to base 2 of how many inputs there are; infinite where they are real numbers."""
        return math.inf

    @property
    def few(self) -> bool:
        """Whether two draws can be the same input: a digest of it then says which split an input is of."""
        return self.bits < MANY_BITS

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many classes there are to answer with; 1 where answers are numbers."""

    @abstractmethod
    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        """Samples; `split` matters only where those to test with are longer than those to train with."""

    @abstractmethod
    def ceiling(self, samples: Samples) -> Bound:
        """The best score that anything can have: of the best rule, on these samples."""

    @abstractmethod
    def floor(self, samples: Samples, setting: Setting) -> Bound:
        """What the best known shortcut open to such a model scores on these samples."""

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        """The best that a model of this mechanism can do, where that is proved."""
        return None

    def proof_margin(self, proved: ProvedCeiling, samples: Samples) -> Margin:
        """How a proved ceiling, an expectation, compares with scores on samples."""
        if self.answers is Answers.NUMBERS:
            best, limit = self.answers_of_best_rules(samples)
            return error_margin(best, limit, samples.targets, proved.score)
        ceiling = self.ceiling(samples)
        return share_margin(ceiling.score, proved.score, len(samples), exact=not ceiling.sampled)

    def answers_of_best_rules(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """The answers of the best rule of all, and of the best one that a proved ceiling allows.

        Needed where answers are numbers and there is a proved ceiling.
        """
        raise NotImplementedError(f"{self.name} has a proved ceiling and needs answers_of_best_rules")

    def further(self) -> Mapping[int, Task]:
        """The same at other lengths, at which a finished run is tested as well."""
        return {}

    def origin(self, samples: Samples) -> NDArray[Any]:
        """What an input is known by where there are few, a row of numbers for each."""
        rows = samples.inputs.reshape(len(samples), -1)
        return rows if samples.present is None else np.concatenate([rows, samples.present], axis=1)

    def samples(self, count: int, split: Split, seed: int = 0, step: int = 0) -> Samples:
        """So many samples of a split: always the same for a seed and a step."""
        chance = np.random.default_rng((split.value, seed, step))
        if not self.few:
            return self.draw(count, split, chance)
        kept, found = list[Samples](), 0
        for _ in range(MOST_TRIES):
            drawn = self.draw(2 * count, split, chance)
            kept.append(drawn.chosen(np.flatnonzero(split_of(self.origin(drawn)) == split.value)))
            found += len(kept[-1])
            if found >= count:
                return joined(kept).chosen(np.arange(count))
        raise UsageError(f"{self.spelled} has too few inputs to be shared out; make it longer")

    def score(self, said: Tensor, samples: Samples) -> float:
        """The score of outputs at the places that are asked, (samples, asked, outputs)."""
        targets = torch.from_numpy(samples.targets).to(said.device)
        if self.answers is Answers.CLASSES:
            return float((said.argmax(-1) == targets).double().mean())
        if self.answers is Answers.BITS:
            nats = torch.nn.functional.cross_entropy(said.double().flatten(0, 1), targets.flatten())
            return float(nats) / math.log(2)
        error = (said[..., 0].double() - targets.double()).square().mean()
        return float(error / targets.double().square().mean())


MANY_BITS = 64
"""With 2^64 inputs and a million samples, two are the same once in ten million times."""
MOST_TRIES = 200
"""Draws after which a task is said to have too few inputs."""


def split_of(origins: NDArray[Any]) -> NDArray[np.int64]:
    """The split that each row belongs to by a digest of it: half to train, a quarter to each other."""
    words = np.ascontiguousarray(origins.astype(np.float64)).view(np.uint64)
    digest = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:  # splitmix64 over the columns
        digest = (digest ^ column) + np.uint64(0x9E3779B97F4A7C15)
        digest = (digest ^ (digest >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        digest = (digest ^ (digest >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        digest ^= digest >> np.uint64(31)
    return np.array([0, 0, 1, 2])[(digest & np.uint64(3)).astype(np.int64)]


def joined(some: list[Samples]) -> Samples:
    """Samples one after the other; they have one length."""
    first = some[0]
    present = None
    if first.present is not None:
        present = np.concatenate([each.present for each in some if each.present is not None])
    hidden = {name: np.concatenate([each.hidden[name] for each in some]) for name in first.hidden}
    inputs, places, targets = (
        np.concatenate([getattr(each, name) for each in some]) for name in ("inputs", "places", "targets")
    )
    return Samples(inputs, places, targets, present, hidden)


def commonest_class(samples: Samples) -> Bound:
    """The floor of a task without a better shortcut: the class that is right most often."""
    counts = np.bincount(samples.targets.reshape(-1))
    return Bound(float(counts.max() / counts.sum()), "always the commonest answer", universal=True)


def best(bounds: Iterable[Bound], sign: int) -> Bound:
    """The best of several shortcuts."""
    return max(bounds, key=lambda bound: sign * bound.score)


def relative_error(said: NDArray[Any], samples: Samples) -> float:
    """The squared error of answers, as a share of that of the answer 0."""
    targets = samples.targets.astype(np.float64)
    return float(np.square(said - targets).mean() / np.square(targets).mean())
