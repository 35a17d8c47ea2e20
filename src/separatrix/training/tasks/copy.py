"""Selective copying: say the symbols among blanks in their order, more of them than in training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, Natural, between
from separatrix.training.tasks._base import Bound, ProvedCeiling, Samples, Split
from separatrix.training.tasks._lengths import Lengths, LengthTask
from separatrix.training.tasks._proofs import one_layer_without_places

if TYPE_CHECKING:
    from numpy.random import Generator

    from separatrix.mechanisms import Mechanism
    from separatrix.training.tasks.setting import Setting


class CopyParameters(Lengths):
    """How many symbols there are to copy in training and in tests, among how many blanks for each."""

    owner = "copy"
    trained: Natural = 8
    tested: Natural = 12
    symbols: Natural = 16
    blanks: Natural = 1
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *Lengths.constraints,
        between("symbols", 2, 1024),
        between("blanks", 0, 64),
        Constraint(
            ("tested", "symbols"),
            lambda p: p.tested <= p.symbols,
            lambda p: f"tested={p.tested} is more than symbols={p.symbols}: each is there at most once",
        ),
    )


class Copy(LengthTask):
    """Different symbols in random order with blanks between them, a sign to begin, and the symbols again."""

    name = "copy"
    title = "Repeat the symbols among blanks in their order, more of them than in training."
    provenance = "[rec] selective copying, arXiv 2312.00752, where each answer is read before the next"
    description = (
        "Different symbols in random order, with `blanks` times as many blanks at random places among them, "
        "then a sign to begin and the symbols once more without the blanks: from the sign on, each token "
        "answers with the symbol that comes next. Models are trained on `trained` symbols and tested on "
        "`tested`. The shortcut says the first token if it is a symbol, then what followed a symbol in "
        "context, and where that was a blank any symbol that stands after a blank and was not said yet. With "
        "blanks=0 it is plain copying, and the shortcut says the first token and then any symbol that was "
        "not said yet."
    )
    schema = CopyParameters
    example: ClassVar[dict[str, object]] = {"trained": 5, "tested": 9}
    setting: ClassVar[dict[str, object]] = {
        "depth": 2,
        "conv": 4,
        "rates": "0.002,0.005,0.015",
        "validation": 256,
        "tests": 2000,
    }
    parameters: CopyParameters

    @property
    def vocabulary(self) -> int:
        return self.parameters.symbols + 2

    @property
    def outputs(self) -> int:
        return self.parameters.symbols

    @property
    def bits(self) -> float:
        p = self.parameters
        return math.log2(math.perm(p.symbols, p.trained) * math.comb(p.trained * (1 + p.blanks), p.trained))

    def draw(self, count: int, split: Split, chance: Generator) -> Samples:
        p = self.parameters
        items, n = p.length(split), p.length(split) * (1 + p.blanks)
        said = chance.permuted(np.tile(np.arange(p.symbols), (count, 1)), axis=1)[:, :items]
        taken = chance.permuted(np.tile(np.arange(n) < items, (count, 1)), axis=1)
        context = np.full((count, n), p.symbols)
        context[taken] = said.reshape(-1)
        begin = np.full((count, 1), p.symbols + 1)
        inputs = np.concatenate([context, begin, said[:, :-1]], axis=1)
        return Samples(inputs, np.tile(np.arange(n, n + items), (count, 1)), said)

    def ceiling(self, samples: Samples) -> Bound:
        return Bound(1.0, "the context says it")

    def floor(self, samples: Samples, setting: Setting) -> Bound:
        asked, said = samples.targets.shape[1], samples.targets
        if not self.parameters.blanks:
            how = "the first token, and then any symbol of the context that was not said yet"
            return Bound((1 + (asked - 1) * any_unsaid(asked - 1)) / asked, how)
        context = samples.inputs[:, : asked * (1 + self.parameters.blanks)]
        alone = np.ones(said.shape, dtype=np.bool_)
        alone[:, 0] = context[:, 0] != said[:, 0]
        for i in range(1, asked):
            before, after = context[:, :-1] == said[:, i - 1, None], context[:, 1:] == said[:, i, None]
            alone[:, i] = ~(before & after).any(1)
        left = alone[:, ::-1].cumsum(1)[:, ::-1]
        return Bound(
            float(np.where(alone, 1 / np.maximum(left, 1), 1).mean()),
            "the first token, what followed in context, and where that is a blank any symbol after a blank "
            "not said yet",
        )

    def proved_ceiling(self, mechanism: Mechanism, setting: Setting) -> ProvedCeiling | None:
        if not (mechanism.permutation_equivariant and one_layer_without_places(setting)):
            return None
        return ProvedCeiling(
            any_unsaid(self.parameters.tested),
            "one layer without convolution or places, of a mechanism that does not see the order, "
            "whatever reads it",
            "docs/theory.md 9.3: each symbol that was not said yet is equally likely to be the next",
        )


def any_unsaid(symbols: int) -> float:
    """How often any symbol that was not said yet is the next one: once in as many as are left."""
    return sum(1 / left for left in range(1, symbols + 1)) / symbols
