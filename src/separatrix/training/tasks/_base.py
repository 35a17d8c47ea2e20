"""The base class of tasks: samples to learn from, the best possible score, and the score of a shortcut."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.core.judgement import ProofMargin, error_margin, share_margin
from separatrix.core.parameters import Parameters, Parametrised, UsageError
from separatrix.core.registry import Described
from separatrix.core.tensors import Tensor, torch
from separatrix.training.tasks.setting import Setting

if TYPE_CHECKING:
    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks._proofs import ModelClass

MIN_UNIQUE_BITS = 64
"""With 2^64 inputs and a million samples, two are equal with a probability of about one in forty million."""
MAX_DRAWS = 200
"""Draws after which a task is reported to have too few inputs."""


class Split(Enum):
    """The use of samples; no sample is in two splits."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2


class Metric(Enum):
    """The kind of answer that a task asks for, by its score."""

    ACCURACY = "accuracy"
    """Answers are classes; the score is the share of correct ones."""
    RELATIVE_ERROR = "squared error relative to that of the answer 0"
    """Answers are numbers."""
    BITS = "mean bits of the correct answer"
    """Answers are classes; the score is the cross-entropy to base 2."""

    @property
    def sign(self) -> int:
        """1 if a higher score is better, -1 if a lower one is."""
        return 1 if self is Metric.ACCURACY else -1


@dataclass(frozen=True)
class Samples:
    """Inputs, the positions at which the output is read, and the correct answers there."""

    inputs: NDArray[Any]
    """Symbols (samples, tokens), or numbers (samples, tokens, features)."""
    positions: NDArray[np.int64]
    """(samples, answers): the tokens whose outputs are scored."""
    targets: NDArray[Any]
    """(samples, answers): the class or number at each position."""
    present: NDArray[np.bool_] | None = None
    """(samples, tokens): a mask of the tokens that exist, if lengths differ."""
    latents: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Variables of the generator that the best rule needs; a model never sees them."""

    def __len__(self) -> int:
        return len(self.inputs)

    def select(self, rows: NDArray[Any]) -> Samples:
        """Return the samples with these row numbers."""
        present = None if self.present is None else self.present[rows]
        latents = {name: values[rows] for name, values in self.latents.items()}
        return Samples(self.inputs[rows], self.positions[rows], self.targets[rows], present, latents)


@dataclass(frozen=True)
class Bound:
    """A ceiling or floor of the score, and the rule or argument that it is based on."""

    score: float
    basis: str
    exact: bool = True
    """Whether it is the rule's score on these samples, or follows from a formula or by counting."""
    sampled: bool = False
    """Whether it estimates an expectation, and so differs from sample to sample."""
    universal: bool = False
    """For a shortcut: whether the models of every proved ceiling of the task can use it."""


@dataclass(frozen=True)
class ProvedCeiling:
    """The best score of a mechanism, by a proof, and the class of models that the proof covers."""

    score: float
    """In expectation over samples; on a finite sample, a model of the class may score slightly better."""
    models: str
    proof: str

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise ValueError(f"a proved ceiling must be a finite number, not {self.score}")


class Task(Described, Parametrised, ABC):
    """Samples with a known ceiling and a measured floor. Each file of the package registers its tasks.

    Samples are reproducible on every machine: NumPy generators draw them from split, seed and step.
    """

    provenance: ClassVar[str]
    example: ClassVar[Mapping[str, object]] = {}
    """Parameters of a small instance, for tests."""
    reason: ClassVar[str]
    """Why a rule exists that is always correct, if one does."""
    setting: ClassVar[Mapping[str, object]] = {}
    """Values of `Setting` that differ from its defaults."""
    metric: ClassVar[Metric] = Metric.ACCURACY
    tolerance: ClassVar[float] = 0.01
    """A run has solved the task if its validation score is within this distance of the ceiling."""
    asks_length: ClassVar[bool] = False
    """Whether the answer is the number of tokens. In all other tasks that number is uninformative."""
    proved_for: ClassVar[ModelClass | None] = None
    """The class of models that `proved_score` holds for."""
    proof: ClassVar[str] = ""
    """The section of docs/theory.md with the proof, and its main step."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters == getattr(other, "parameters", None)

    def __hash__(self) -> int:
        return hash((type(self), self.parameters))

    @classmethod
    def read(cls, values: Mapping[str, object] | None = None) -> Self:
        """Return the task with these parameters, or raise a UsageError of one line."""
        return cls(cls.schema.read(values or {}))

    @classmethod
    def default_setting(cls, **changes: object) -> Setting:
        """Return the sizes and training options of the task, with these changes."""
        return Setting.read({**cls.setting, **changes})

    @property
    def spelling(self) -> str:
        """The name and the parameters that differ from their defaults."""
        words = (f"{name}={value}" for name, value in self.parameters.non_default_values().items())
        return " ".join((self.name, *words))

    @property
    def vocabulary(self) -> int | None:
        """The number of symbols; None if inputs are numbers."""
        return None

    @property
    def features(self) -> int | None:
        """The width of numerical inputs; None if inputs are symbols."""
        return None

    @property
    def bits(self) -> float:
        """The logarithm to base 2 of the number of inputs; infinite for real numbers."""
        return math.inf

    @property
    def has_few_inputs(self) -> bool:
        """Whether two draws can be equal. A digest of the input then decides which split it belongs to."""
        return self.bits < MIN_UNIQUE_BITS

    @property
    def max_tokens(self) -> int:
        """The largest number of tokens of an input, over all splits."""
        return max(int(self.samples(1, split).inputs.shape[1]) for split in Split)

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of classes; 1 if answers are numbers."""

    @abstractmethod
    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        """Draw samples; `split` matters only if test samples are longer than training samples."""

    def ceiling(self, samples: Samples) -> Bound:
        """Return the best possible score: that of the best rule, on these samples."""
        return Bound(1.0, self.reason)

    def floor(self, samples: Samples) -> Bound:
        """Return the score of the best known shortcut on these samples: the most frequent class by default."""
        return majority_floor(samples)

    def proved_score(self) -> float | None:
        """Return the best score that a model of the class `proved_for` can have, if that is proved."""
        return None

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        """Return the best score of a model with this mechanism, if it is proved."""
        if self.proved_for is None or not self.proved_for.contains(mechanism, setting):
            return None
        score = self.proved_score()
        return None if score is None else ProvedCeiling(score, self.proved_for.description, self.proof)

    def proof_margin(self, proved: ProvedCeiling, samples: Samples) -> ProofMargin:
        """Return how far scores on samples may deviate from a proved ceiling, which is an expectation."""
        if self.metric is Metric.RELATIVE_ERROR:
            best, limit = self.best_predictions(samples)
            return error_margin(best, limit, samples.targets, proved.score)
        ceiling = self.ceiling(samples)
        return share_margin(ceiling.score, proved.score, len(samples), exact=not ceiling.sampled)

    def best_predictions(self, samples: Samples) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the predictions of the best rule, and of the best rule that a proved ceiling allows.

        Only tasks whose answers are numbers and that have a proved ceiling need it.
        """
        raise NotImplementedError(f"{self.name} has a proved ceiling and needs best_predictions")

    def further_tasks(self) -> Mapping[int, Task]:
        """Return the task at further lengths, at which a finished run is tested as well."""
        return {}

    def split_keys(self, samples: Samples) -> NDArray[Any]:
        """Return a row of numbers for each sample; samples with equal rows belong to the same split."""
        rows = samples.inputs.reshape(len(samples), -1)
        return rows if samples.present is None else np.concatenate([rows, samples.present], axis=1)

    def samples(self, count: int, split: Split, seed: int = 0, step: int = 0) -> Samples:
        """Return `count` samples of a split, the same ones for the same seed and step."""
        rng = np.random.default_rng((split.value, seed, step))
        if not self.has_few_inputs:
            return self.draw(count, split, rng)
        parts, total = list[Samples](), 0
        for _ in range(MAX_DRAWS):
            # A training split takes half of the draws, the others a quarter each.
            candidates = self.draw(2 * count, split, rng)
            is_in_split = assign_splits(self.split_keys(candidates)) == split.value
            parts.append(candidates.select(np.flatnonzero(is_in_split)))
            total += len(parts[-1])
            if total >= count:
                return concatenate(parts).select(np.arange(count))
        raise UsageError(f"{self.spelling} has too few different inputs for three splits; make it longer")

    def score(self, outputs: Tensor, samples: Samples) -> float:
        """Return the score of a model's outputs at the positions, (samples, answers, outputs)."""
        targets = torch.from_numpy(samples.targets).to(outputs.device)
        if self.metric is Metric.ACCURACY:
            return float((outputs.argmax(-1) == targets).double().mean())
        if self.metric is Metric.BITS:
            nats = torch.nn.functional.cross_entropy(outputs.double().flatten(0, 1), targets.flatten())
            return float(nats) / math.log(2)
        # In float64, since the mean over many answers would lose digits in float32.
        error = (outputs[..., 0].double() - targets.double()).square().mean()
        return float(error / targets.double().square().mean())


def assign_splits(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the split of each row by a digest of it: half for training, a quarter for each of the others."""
    words = np.ascontiguousarray(rows.astype(np.float64)).view(np.uint64)
    digest = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:  # splitmix64 over the columns
        digest = (digest ^ column) + np.uint64(0x9E3779B97F4A7C15)
        digest = (digest ^ (digest >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        digest = (digest ^ (digest >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        digest ^= digest >> np.uint64(31)
    return np.array([0, 0, 1, 2])[(digest & np.uint64(3)).astype(np.int64)]


def concatenate(parts: Sequence[Samples]) -> Samples:
    """Concatenate samples of one length."""
    inputs, positions, targets = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("inputs", "positions", "targets")
    )
    masks = [part.present for part in parts if part.present is not None]
    latents = {name: np.concatenate([part.latents[name] for part in parts]) for name in parts[0].latents}
    return Samples(inputs, positions, targets, np.concatenate(masks) if masks else None, latents)


def majority_floor(samples: Samples) -> Bound:
    """Return the floor of a task without a better shortcut: the most frequent class."""
    counts = np.bincount(samples.targets.reshape(-1))
    return Bound(float(counts.max() / counts.sum()), "always the most frequent answer", universal=True)


def best_bound(bounds: Iterable[Bound], sign: int = 1) -> Bound:
    """Return the best of several shortcuts."""
    return max(bounds, key=lambda bound: sign * bound.score)


def relative_error(predictions: NDArray[Any], samples: Samples) -> float:
    """Return the squared error of predictions relative to that of the answer 0."""
    targets = samples.targets.astype(np.float64)
    return float(np.square(predictions - targets).mean() / np.square(targets).mean())
