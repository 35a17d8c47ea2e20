"""Sampled verdicts, against an average over every place of the odd token and every sign vector."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from independent import literal, points
from separatrix.cli.application import app

DRAWS = 300
SIGMAS = 4.5
"""A true probability fails once in 150,000 seeds. Seeds are fixed, so it does not fail now and then."""


def compare(words: list[str], options: list[str], places: list[literal.Neuron], m: int) -> None:
    """Compare the sampled probabilities of a verdict with those over all places."""
    answer = CliRunner().invoke(app, ["verdict", *words, *options, "--draws", str(DRAWS), "--json"])
    assert answer.exit_code == 0, (words, answer.output, answer.exception)
    document = json.loads(answer.stdout)
    assert document["engine"] in ("dense", "grouped"), words
    expected = {
        "distinguish": sum(place.tells_apart(m) for place in places) / len(places),
        "fire_d0": sum(1 - (1 - place.p0) ** m for place in places) / len(places),
        "fire_d1": sum(1 - (1 - place.p1) ** m for place in places) / len(places),
    }
    for name, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / DRAWS)
        assert abs(document[name] - float(probability)) <= SIGMAS * error + 1e-9, (words, name, probability)


def rough_places(mechanism: str, point: dict[str, Fraction], identity: bool) -> list[literal.Neuron]:
    tau = point["c"] + Fraction(1, 10)
    places = []
    for first in range(int(point["n"])):
        tokens = [literal.rough(point, label, first, identity) for label in (0, 1)]
        places.append(literal.read((literal.rows(mechanism, tokens[0]), literal.rows(mechanism, tokens[1])), tau))
    return places


def compare_rough(chance: random.Random) -> None:
    """Compare one random rough matrix without noise."""
    d = chance.randint(4, 6)
    point = {
        "n": Fraction(chance.randint(d, 9)),
        "d": Fraction(d),
        "m": Fraction(chance.randint(1, 4)),
        "a0": points.decimal(chance, 0.01, 0.3),
        "a1": points.decimal(chance, 0.7, 2),
        "b": points.decimal(chance, 0.1, 0.6),
        "c": points.decimal(chance, 0.1, 0.4),
        "spikes": Fraction(chance.randint(1, 3)),
    }
    form = chance.choice(("ones", "identity"))
    mechanism = chance.choice(("softmax", "linear", "power:beta=2", "hardmax"))
    places = rough_places(mechanism, point, form == "identity")
    if min(place.nearest for place in places) < 1e-9:
        return  # float64 does not decide it
    words = ["rough", mechanism, *points.spell(point), f"form={form}"]
    compare(words, ["--seed", str(chance.randint(0, 10**6))], places, int(point["m"]))


def compare_window(chance: random.Random) -> None:
    """Compare a window on one loud token at any place: the query stands at the last."""
    point = points.random_point("level", chance)
    n, m, size = int(point["n"]), int(point["m"]), chance.randint(1, 6)
    tau = point.get("tau") or literal.level_threshold(point)
    places = []
    for place in range(n):
        outputs = []
        for label in (0, 1):
            tokens = literal.level(point, label)
            order = [*range(1, place + 1), 0, *range(place + 1, n)]
            moved = literal.Tokens(
                (tuple(tokens.logits[0][token] for token in order),), tuple(tokens.values[token] for token in order)
            )
            outputs.append(literal.rows("softmax", moved, lambda token: n - 1 - token < size))
        places.append(literal.read((outputs[0], outputs[1]), tau))
    if min(place.nearest for place in places) < 1e-9:
        return
    words = ["level", f"window:size={size}", *points.spell(point)]
    compare(words, ["--seed", str(chance.randint(0, 10**6))], places, m)


@pytest.mark.parametrize("seed", range(6))
def test_rough_matrices(seed: int) -> None:
    compare_rough(random.Random(f"rough {seed}"))


@pytest.mark.parametrize("seed", range(6))
def test_windows_see_the_last_places(seed: int) -> None:
    compare_window(random.Random(f"window {seed}"))
