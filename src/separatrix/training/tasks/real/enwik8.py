"""enwik8: every byte from those before it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, Parameters, between
from separatrix.training.data import Stream, data_folder
from separatrix.training.data.enwik8 import Enwik8 as Enwik8Data
from separatrix.training.data.ngrams import NGrams, bits_of
from separatrix.training.tasks._base import Answers, Bound, Samples, Split, best
from separatrix.training.tasks.real._base import RealTask

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from separatrix.training.tasks.setting import Setting


class Enwik8Parameters(Parameters):
    """How many bytes are read."""

    owner = "enwik8"
    n: Natural = 256
    constraints: ClassVar[tuple[Constraint, ...]] = (between("n", 4, 16384),)


class Enwik8(RealTask):
    """n bytes of the English Wikipedia; each says the next."""

    name = "enwik8"
    title = "Say the next byte of the English Wikipedia, in bits a byte."
    provenance = "[rec] Large Text Compression Benchmark; the usual split"
    description = (
        "n bytes from anywhere in a split, each of which says the next one; scored in bits a byte, with no "
        "more context than these bytes have. Windows to validate and to test with do not overlap. The floor "
        "is the best of uni-, bi- and trigrams counted in all of the training bytes."
    )
    data = Enwik8Data.name
    schema = Enwik8Parameters
    answers = Answers.BITS
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "heads": 4,
        "mlp": 2,
        "rope": 10000,
        "steps": 1000,
        "rates": "0.001,0.003",
        "every": 100,
        "validation": 64,
        "tests": 400,
    }
    parameters: Enwik8Parameters

    @property
    def vocabulary(self) -> int:
        return 256

    @property
    def outputs(self) -> int:
        return 256

    def count(self, part: Stream) -> int:
        """How many windows there are that do not overlap."""
        return (len(part) - 1) // self.parameters.n

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        part, n = self.part(split), self.parameters.n
        if split is Split.TRAIN:
            return self._windows(part, chance.integers(len(part) - n, size=count))
        return self.chosen(part, chance.permutation(self.count(part))[:count])

    def chosen(self, split: Stream, rows: NDArray[np.int64]) -> Samples:
        return self._windows(split, rows * self.parameters.n)

    def _windows(self, part: Stream, starts: NDArray[np.int64]) -> Samples:
        n = self.parameters.n
        found = part.symbols[starts[:, None] + np.arange(n + 1)].astype(np.int64)
        places = np.broadcast_to(np.arange(n), (len(starts), n))
        return Samples(found[:, :-1], places, found[:, 1:], hidden={"row": starts})

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        texts = np.concatenate([samples.inputs[:, :1], samples.targets], axis=1).astype(np.uint8)
        orders = _fitted(data_folder()).probabilities(texts)
        names = ("unigrams", "bigrams", "trigrams")
        bounds = (
            Bound(bits_of(each[:, 1:]), f"{name} counted in all of the training bytes")
            for name, each in zip(names, orders, strict=True)
        )
        return best(bounds, self.answers.sign)


@lru_cache(maxsize=1)
def _fitted(_: Path) -> NGrams:
    task = Enwik8(Enwik8Parameters())
    return NGrams.fit(task.part(Split.TRAIN).symbols, task.part(Split.VALIDATION).symbols)
