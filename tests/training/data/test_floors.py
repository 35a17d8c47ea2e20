"""Floors against literal loops, and in cases with a known answer."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from separatrix.training.data import floors
from separatrix.training.data.floors import (
    STRENGTHS,
    LogisticRegression,
    NaiveBayes,
    byte_counts,
    majority,
    ngram_floors,
)

RNG = np.random.default_rng(5)


def test_the_majority_floor_uses_the_most_frequent_training_label() -> None:
    assert majority(np.array([2, 2, 1]), np.array([1, 1, 2])).value == pytest.approx(1 / 3)


def test_the_gradient_of_the_regression_against_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "CHUNK_ROWS", 7)
    rows, labels = RNG.integers(5, size=(20, 3), dtype=np.uint8), RNG.integers(4, size=20)
    weights = RNG.standard_normal((4, 4)).astype(np.float32)

    def literal(weights: np.ndarray) -> float:
        total = 0.0
        for row, label in zip(rows.astype(float), labels, strict=True):
            logits = [sum(row * weights[:3, k]) + weights[3, k] for k in range(4)]
            total += math.log(sum(map(math.exp, logits))) - logits[label]
        return total / 20

    value, gradient = floors._cross_entropy(weights, rows, labels)
    assert value == pytest.approx(literal(weights.astype(float)), rel=1e-5)
    for i in range(4):
        for k in range(4):
            step = np.zeros((4, 4))
            step[i, k] = 1e-4
            slope = (literal(weights + step) - literal(weights - step)) / 2e-4
            assert gradient[i, k] == pytest.approx(slope, abs=1e-4)


def test_the_regression_learns_a_linear_label_and_not_noise() -> None:
    pixels = RNG.integers(256, size=(3000, 4, 5), dtype=np.uint8)
    labels = (pixels[:, 1, 2].astype(int) > pixels[:, 3, 3]).astype(np.int64)
    parts = [(pixels[part], labels[part]) for part in (slice(1000), slice(1000, 2000), slice(2000, 3000))]
    assert LogisticRegression.fit(parts[0], parts[1], 2).accuracy(*parts[2]) > 0.97
    noise = [(inputs, RNG.integers(2, size=1000)) for inputs, _ in parts]
    assert abs(LogisticRegression.fit(noise[0], noise[1], 2).accuracy(*noise[2]) - 0.5) < 0.06


def test_the_accuracy_of_the_regression_is_that_of_its_weights() -> None:
    pixels, labels = RNG.integers(256, size=(300, 6), dtype=np.uint8), RNG.integers(3, size=300)
    train, validation = (pixels[:100], labels[:100]), (pixels[100:200], labels[100:200])
    regression = LogisticRegression.fit(train, validation, 3)
    assert regression.weights.shape == (7, 3)
    assert regression.accuracy(pixels[200:], labels[200:]) == pytest.approx(
        np.mean((pixels[200:] @ regression.weights[:-1] + regression.weights[-1]).argmax(1) == labels[200:])
    )


def test_naive_bayes_against_fractions() -> None:
    words = [b"good", b"bad", b"film", b"plot", b"it's"]
    texts = [b" ".join(RNG.choice(words, size=3)) for _ in range(60)]
    labels = np.array([int(b"good" in text) ^ int(RNG.random() < 0.2) for text in texts])
    naive_bayes = NaiveBayes.fit(texts[:40], labels[:40])
    correct = 0
    for text, label in zip(texts[40:], labels[40:], strict=True):
        odds = Fraction(sum(labels[:40]) + 2, 40 - sum(labels[:40]) + 2)
        for word in set(text.split()):
            with_word = [
                sum(
                    word in training_text.split() and training_label == value
                    for training_text, training_label in zip(texts, labels[:40], strict=False)
                )
                for value in (0, 1)
            ]
            size = [int(np.sum(labels[:40] == value)) for value in (0, 1)]
            odds *= Fraction(with_word[1] + 1, size[1] + 2) / Fraction(with_word[0] + 1, size[0] + 2)
        correct += int(odds > 1) == label
    assert naive_bayes.accuracy(texts[40:], labels[40:]) == correct / 20


def test_byte_counts_are_rounded_logarithms() -> None:
    counts = byte_counts([b"aab", b""])
    assert counts.shape == (2, 256)
    assert counts[0, 97] == round(16 * math.log(3))
    assert counts[0].sum() == counts[0, 97] + round(16 * math.log(2))
    assert not counts[1].any()


def test_ngrams_against_a_literal_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.training.data.floors.CHUNK_SYMBOLS", 64)
    source = RNG.integers(97, 101, size=600, dtype=np.uint8)
    source[1::2] = source[::2] + 1
    train, validation, test = source[:400], source[400:500], source[500:]
    strengths: list[float] = []
    runs = {order: Counter(bytes(train[j : j + order]) for j in range(len(train) - order + 1)) for order in (1, 2)}

    def probability(text: bytes, i: int, order: int) -> float:
        if order == 0:
            return 1 / 256
        if i < order - 1:
            return probability(text, i, order - 1)
        run, context = text[i - order + 1 : i + 1], text[i - order + 1 : i]
        run_count = runs[order][run]
        context_count = sum(count for run_bytes, count in runs[order].items() if run_bytes[:-1] == context)
        s = strengths[order - 1]
        return (run_count + s * probability(text, i, order - 1)) / (context_count + s)

    def bits(text: np.ndarray, order: int) -> float:
        return -sum(math.log2(probability(text.tobytes(), i, order)) for i in range(len(text))) / len(text)

    results = ngram_floors(train, validation, test)
    assert [floor.name for floor in results] == ["unigram", "bigram", "trigram"]
    for order in (1, 2):
        scores = []
        for s in STRENGTHS:
            strengths[order - 1 :] = [s]
            scores.append(bits(validation, order))
        strengths[order - 1 :] = [STRENGTHS[int(np.argmin(scores))]]
        assert results[order - 1].value == pytest.approx(bits(test, order), rel=1e-12)
    assert results[1].value < results[0].value < 8
    assert all(floor.measure == "bits a byte" for floor in results)


def test_random_bytes_take_eight_bits() -> None:
    noise = RNG.integers(256, size=30_000, dtype=np.uint8)
    results = ngram_floors(noise[:20_000], noise[20_000:25_000], noise[25_000:])
    assert all(abs(floor.value - 8) < 0.03 for floor in results)
