"""The numbers in pictures of constructions, against literal loops."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from typing import Any

import pytest

from independent import literal, points
from separatrix.analysis.cards.illustration import illustrate_at

MECHANISMS = ("softmax", "linear", "identity-features:normalised=no", "hardmax", "relu")


def check_picture(construction: str, mechanism: str, point: dict[str, Fraction], seed: int) -> None:
    """Compare the logits, values, weights and readings of one picture."""
    words = dict(word.split("=") for word in points.spell(point))
    picture: dict[str, Any] = json.loads(json.dumps(illustrate_at(construction, mechanism, words, seed=seed).as_json()))
    tau = point.get("tau") or literal.level_threshold(point)
    assert picture["threshold"] == pytest.approx(float(tau))
    (drawn,) = picture["mechanisms"]
    outputs = []
    for label in (0, 1):
        tokens = literal.CONSTRUCTIONS[construction](point, label)
        (weights_of_rows,) = [drawn["weights"][label]]
        groups = picture["tokens"][label]
        assert sum(group["count"] for group in groups) == tokens.n
        scale = literal.Fraction(1)
        if tokens.in_log_n and mechanism not in literal.FREE_OF_SCALE:
            scale = literal.mpmath.log(tokens.n)
        weights = literal.attend(mechanism, [literal.exact(z) * scale for z in tokens.logits[0]])
        # Tokens of a group are alike, and groups are told apart by what they show, in any order.
        shown: dict[tuple[float, ...], list[float]] = {}
        for token in range(tokens.n):
            cells = (float(tokens.logits[0][token]), *map(float, tokens.values[token]))
            key = tuple(round(cell, 9) for cell in cells)
            entry = shown.setdefault(key, [0, 0.0])
            entry[0] += 1
            entry[1] += float(weights[token])
        printed: dict[tuple[float, ...], list[float]] = {}
        for group, weight in zip(groups, weights_of_rows[0], strict=True):
            entry = printed.setdefault(tuple(round(cell, 9) for cell in group["cells"]), [0, 0.0])
            entry[0] += group["count"]
            entry[1] += weight
        # A row without cells stands for the tokens that have no row of their own.
        rest_count, rest_weight = printed.pop((), [0, 0.0])
        assert {*printed} <= {*shown}
        for key, (count, weight) in printed.items():
            assert count <= shown[key][0]
            share = shown[key][1] * count / shown[key][0]
            assert weight == pytest.approx(share, rel=1e-9, abs=1e-12)
        assert rest_count == tokens.n - sum(count for count, _ in printed.values())
        total = sum(weight for _, weight in shown.values()) - sum(weight for _, weight in printed.values())
        assert rest_weight == pytest.approx(total, rel=1e-9, abs=1e-9)
        outputs.append([[float(number) for number in row] for row in literal.rows(mechanism, tokens)])
    # The signs are the picture's own draw: one sign vector must explain a neuron's readings of both labels.
    for neuron in range(int(point["m"])):
        readings = [drawn["readings"][label][neuron] for label in (0, 1)]
        possible = (
            [max(sum(s * x for s, x in zip(signs, row, strict=True)) for row in outputs[label]) for label in (0, 1)]
            for signs in itertools.product((1, -1), repeat=len(outputs[0][0]))
        )
        assert any(pair == pytest.approx(readings, rel=1e-9, abs=1e-12) for pair in possible)
        for label in (0, 1):
            if abs(readings[label] - float(tau)) > 1e-9:
                assert drawn["fires"][label][neuron] == (readings[label] > float(tau))


@pytest.mark.parametrize("construction", sorted(literal.CONSTRUCTIONS))
def test_pictures_show_what_literal_loops_compute(construction: str) -> None:
    chance = random.Random(f"picture {construction}")
    for seed in range(8):
        check_picture(construction, chance.choice(MECHANISMS), points.random_point(construction, chance), seed)
