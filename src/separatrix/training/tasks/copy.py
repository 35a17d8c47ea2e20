"""Selective copying: repeat the symbols among blanks in their order, more of them than in training."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from separatrix.core.parameters import Constraint, natural
from separatrix.training.tasks._base import Bound, Samples, Split
from separatrix.training.tasks._lengths import LengthTask, length
from separatrix.training.tasks._proofs import ORDER_BLIND_MODELS
from separatrix.training.tasks.setting import MANY_ANSWERS


class CopyTask(LengthTask):
    """Repeat the symbols among blanks in their order, more of them than in training.

    Different symbols in random order, with `blanks` times as many blanks at random positions among them, then
    a start token and the symbols once more without the blanks: from the start token on, each token answers
    with the next symbol. Models are trained on `trained` symbols and tested on `tested`. The shortcut returns
    the first token if it is a symbol, then the token that followed the current symbol in context, and if that
    is a blank, any unused symbol that follows a blank. With blanks=0 it is plain copying, and the shortcut
    returns the first token and then any unused symbol.
    """

    name = "copy"
    provenance = "[rec] selective copying, arXiv 2312.00752, where each answer is read before the next"
    reason = "the context determines it"
    trained: int = length(8)
    tested: int = length(12)
    symbols: int = natural(16, at_least=2, at_most=1024)
    blanks: int = natural(1, at_least=0, at_most=64)
    relations = (
        *LengthTask.relations,
        Constraint(
            ("tested", "symbols"),
            lambda p: p.tested <= p.symbols,
            lambda p: f"tested={p.tested} is more than symbols={p.symbols}: each occurs at most once",
        ),
    )
    example: ClassVar[dict[str, object]] = {"trained": 5, "tested": 9}
    setting = MANY_ANSWERS | {"depth": 2, "conv": 4, "rates": "0.002,0.005,0.015"}
    proved_for = ORDER_BLIND_MODELS
    proof = "docs/theory.md 9.3: each unused symbol is equally likely to be the next"

    @property
    def vocabulary(self) -> int:
        return self.symbols + 2

    @property
    def outputs(self) -> int:
        return self.symbols

    @property
    def bits(self) -> float:
        tokens = self.trained * (1 + self.blanks)
        return math.log2(math.perm(self.symbols, self.trained) * math.comb(tokens, self.trained))

    def draw(self, count: int, split: Split, rng: np.random.Generator) -> Samples:
        items, n = self.length_in(split), self.length_in(split) * (1 + self.blanks)
        targets = rng.permuted(np.tile(np.arange(self.symbols), (count, 1)), axis=1)[:, :items]
        is_symbol = rng.permuted(np.tile(np.arange(n) < items, (count, 1)), axis=1)
        context = np.full((count, n), self.symbols)
        context[is_symbol] = targets.reshape(-1)
        start = np.full((count, 1), self.symbols + 1)
        inputs = np.concatenate([context, start, targets[:, :-1]], axis=1)
        return Samples(inputs, np.tile(np.arange(n, n + items), (count, 1)), targets)

    def floor(self, samples: Samples) -> Bound:
        items, targets = samples.targets.shape[1], samples.targets
        if not self.blanks:
            basis = "the first token, and then any unused symbol of the context"
            return Bound((1 + (items - 1) * unused_symbol_accuracy(items - 1)) / items, basis)
        context = samples.inputs[:, : items * (1 + self.blanks)]
        # The symbols that follow a blank, or the first symbol if a blank comes first, must be guessed.
        is_guessed = np.ones(targets.shape, dtype=np.bool_)
        is_guessed[:, 0] = context[:, 0] != targets[:, 0]
        for i in range(1, items):
            before, after = context[:, :-1] == targets[:, i - 1, None], context[:, 1:] == targets[:, i, None]
            is_guessed[:, i] = ~(before & after).any(1)
        unused = is_guessed[:, ::-1].cumsum(1)[:, ::-1]
        return Bound(
            float(np.where(is_guessed, 1 / np.maximum(unused, 1), 1).mean()),
            "the first token, the token that followed in context, and after a blank any unused symbol that "
            "follows a blank",
        )

    def proved_score(self) -> float:
        return unused_symbol_accuracy(self.tested)


def unused_symbol_accuracy(symbols: int) -> float:
    """Return how often a random unused symbol is the next one, over a sequence of different symbols."""
    return sum(1 / unused for unused in range(1, symbols + 1)) / symbols
