"""Verdicts of the command line, against literal loops that share no code with it."""

from __future__ import annotations

import ast
import json
import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from independent import literal, points
from separatrix.cli.application import app

STANDALONE = ("literal.py", "points.py", "ledger.py")
ALLOWED = {
    "__future__",
    "collections",
    "dataclasses",
    "fractions",
    "itertools",
    "math",
    "mpmath",
    "numpy",
    "random",
    "statistics",
    "typing",
}
ROUNDING = 1e-9
"""Engines that are not certified compute in float64: nearer to the threshold than this they may be wrong."""


def verdict(construction: str, mechanism: str, words: list[str], *options: str) -> dict[str, Any] | None:
    """Return the document that `separatrix verdict` prints, or None if it refuses the point."""
    answer = CliRunner().invoke(app, ["verdict", construction, mechanism, *words, *options, "--json"])
    if answer.exit_code == 2:
        return None
    assert answer.exit_code == 0, (answer.output, answer.exception)
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def compare(construction: str, mechanism: str, point: dict[str, Fraction]) -> str:
    """Compare one verdict; return how: "certified", "float64", "undecided", "near a tie" or "refused"."""
    words = points.spell(point)
    document = verdict(construction, mechanism, words)
    if document is None:
        return "refused"
    tau = point.get("tau") or literal.level_threshold(point)
    expected = literal.neuron(construction, mechanism, point, tau)
    certified = document["engine"] == "certified"
    if not certified and expected.nearest < ROUNDING:
        return "near a tie"
    where = (construction, mechanism, *words)
    m = int(point["m"])
    probability = expected.tells_apart(m)
    if "open" in document["evidence"] or "too close to call" in document["evidence"]:
        low, high = document["interval"]
        assert low - 1e-12 <= float(probability) <= high + 1e-12, where
        assert not certified, where
        return "undecided"
    assert document["engine"] in ("certified", "closed"), where
    neuron = {name: Fraction(value) for name, value in document["neuron"].items()}
    assert neuron == {"p0": expected.p0, "p1": expected.p1, "q": expected.q}, where
    assert document["distinguish"] == pytest.approx(float(probability), rel=1e-12, abs=1e-300), where
    assert document["fire_d0"] == pytest.approx(float(1 - (1 - expected.p0) ** m), rel=1e-12), where
    assert document["fire_d1"] == pytest.approx(float(1 - (1 - expected.p1) ** m), rel=1e-12), where
    fires_on_both = 1 - (1 - expected.p1) ** m - probability >= Fraction(1, 2)
    word = (
        "distinguishes"
        if probability >= Fraction(99, 100)
        else ("saturated" if fires_on_both else "blind")
        if probability <= Fraction(1, 100)
        else "partial"
    )
    assert document["verdict"] == word, where
    margin, largest = float(expected.margin), float(expected.largest)
    if document["margin"] is None:  # float64 does not know it, which only other engines may say
        assert not certified, where
        return "margin unknown"
    assert document["margin"] == pytest.approx(margin, rel=1e-9, abs=1e-12 * max(1.0, abs(largest))), where
    if document["bits"] is not None and abs(margin) > 1e-9 and largest > 0:
        assert document["bits"] == pytest.approx(math.log2(largest / abs(margin)), rel=1e-6, abs=1e-6), where
    return "certified" if certified else "float64"


def compare_many(construction: str, count: int, seed: int) -> Counter[str]:
    """Compare at random points, each with a random mechanism."""
    chance = random.Random(f"{construction} {seed}")
    done = Counter[str]()
    for _ in range(count):
        done[compare(construction, chance.choice(points.KERNELS), points.random_point(construction, chance))] += 1
    return done


@pytest.mark.parametrize("name", STANDALONE)
def test_standalone_modules_import_nothing_of_ours(name: str) -> None:
    tree = ast.parse(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    imported = {
        module.partition(".")[0]
        for node in ast.walk(tree)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "" if node.level == 0 else "relative"]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= ALLOWED


@pytest.mark.parametrize("construction", sorted(literal.CONSTRUCTIONS))
def test_verdicts_are_those_of_literal_loops(construction: str) -> None:
    done = compare_many(construction, 30, seed=0)
    assert done["certified"] + done["float64"] >= 22, done
