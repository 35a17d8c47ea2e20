"""Induction against the list of all its equally likely samples."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from separatrix.mechanisms import mechanism_named
from separatrix.training.tasks import Split, task_named

SIZES = [(4, 3), (5, 3), (6, 4), (8, 3)]


def list_samples(n: int, symbols: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield every input with its answer; each is as likely as any other."""
    for query in range(symbols):
        others = [symbol for symbol in range(symbols) if symbol != query]
        for position in range(n - 2):
            for rest in product(others, repeat=n - 2):
                tokens = (*rest[:position], query, *rest[position:], query)
                yield tokens, tokens[position + 1]


@pytest.mark.parametrize(("n", "symbols"), SIZES)
def test_the_proved_ceiling_is_the_share_of_the_best_rule_that_does_not_see_the_order(n: int, symbols: int) -> None:
    answers: dict[tuple[object, ...], Counter[int]] = defaultdict(Counter)
    for tokens, answer in list_samples(n, symbols):
        answers[(*sorted(tokens), tokens[-1])][answer] += 1
    best = sum(max(counts.values()) for counts in answers.values())
    task = task_named("induction").read({"n": n, "symbols": symbols})
    proved = task.proved_ceiling(mechanism_named("softmax"), task.default_setting(conv=0))
    assert proved is not None
    assert proved.score == pytest.approx(best / sum(map(Counter.total, answers.values())), rel=1e-12)


@pytest.mark.parametrize(("n", "symbols"), SIZES)
def test_the_bits_of_a_sample_count_the_samples(n: int, symbols: int) -> None:
    task = task_named("induction").read({"n": n, "symbols": symbols})
    assert task.bits == pytest.approx(math.log2(len(set(list_samples(n, symbols)))), rel=1e-12)
    assert (task.vocabulary, task.outputs) == (symbols, symbols)


def test_every_sample_is_drawn_and_no_other() -> None:
    task = task_named("induction").read({"n": 5, "symbols": 3})
    samples = task.draw(5000, Split.TEST, np.random.default_rng(0))
    drawn = Counter(zip(map(tuple, samples.inputs.tolist()), samples.targets[:, 0].tolist(), strict=True))
    expected = set(list_samples(5, 3))
    assert drawn.keys() == expected
    assert max(drawn.values()) < 2 * 5000 / len(expected)
    assert (samples.positions == 4).all()


def test_the_shortcut_never_returns_the_last_symbol_itself() -> None:
    """With one other symbol per place, the last symbol, which occurs twice, is the most frequent of all."""
    task = task_named("induction").read({"n": 4, "symbols": 1000})
    samples = task.draw(4000, Split.TEST, np.random.default_rng(0))
    assert task.floor(samples).score == pytest.approx(task.proved_score(), abs=0.03)
    assert task.ceiling(samples).score == 1
