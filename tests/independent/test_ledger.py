"""The prediction ledger, against a second computation from the documents that commands print."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from independent import ledger, literal
from separatrix.analysis.evidence.experiments import ReportQuestion, run_report
from separatrix.analysis.evidence.predictions import PredictedScore, Prediction
from separatrix.exact.verdicts import verdict

SMALL = "steps=4 every=2 width=8 batch=4 validation=8 tests=16 rates=0.1"
EXPERIMENTS = (
    f"needle softmax,linear,elu n=8 {SMALL}",
    f"duplication softmax,linear items=4 {SMALL}",
    f"location softmax,linear n=4 {SMALL}",
    f"mqar softmax,gla pairs=2 keys=4 values=4 {SMALL.replace('width=8', 'width=16')}",
    f"mqar softmax pairs=3 keys=4 values=4 {SMALL.replace('width=8', 'width=16')}",
)
LIKE = {"needle": "spike", "duplication": "duplication", "location": "location"}


@pytest.mark.parametrize("seed", range(40))
def test_rank_correlation_and_interval(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.randint(1, 12)
    one, other = ([float(chance.randint(0, 6)) for _ in range(size)] for _ in range(2))
    made = Prediction("", "", tuple(PredictedScore("", "", a, b) for a, b in zip(one, other, strict=True)), ())
    expected = ledger.spearman(one, other)
    if expected is None:
        assert made.correlation is None
        assert made.interval is None
        return
    assert made.correlation == pytest.approx(expected, abs=1e-12)
    bounds = ledger.interval(expected, size)
    assert made.interval == (None if bounds is None else pytest.approx(bounds, abs=1e-9))


def probability(row: ledger.Trained) -> float | None:
    """P on the construction most like the task: by literal loops for recall, of the command elsewhere."""
    if row.task == "mqar":
        if row.mechanism != "softmax":
            return float(verdict("recall", row.mechanism, {"n": row.pairs, "m": 12}).outcome.distinguish)
        point = {name: literal.Fraction(value) for name, value in (("n", row.pairs), ("width", 32), ("scale", 4))}
        neuron = literal.neuron("recall", "softmax", point, literal.Fraction(1, 2))
        return float(neuron.tells_apart(12))
    return float(verdict(LIKE[row.task], row.mechanism).outcome.distinguish)


def test_ledger_of_small_experiments(tmp_path: Path) -> None:
    question = ReportQuestion("small", "Small", "?", EXPERIMENTS)
    found = run_report(f"sqlite:///{tmp_path}/runs.db", seeds=2, questions=(question,), workers=1)
    document: dict[str, Any] = json.loads(json.dumps(found.as_json()))
    experiments = [(learned.label, json.loads(json.dumps(learned.as_json()))) for learned in found.parts[0].results]
    rows = ledger.collect(experiments)
    expected = {
        "proved ceilings": ledger.ceilings(rows),
        "constructions": ledger.constructions(rows, probability),
        "state": ledger.states(rows),
    }
    entries = {entry["name"]: entry for entry in document["predictions"]}
    assert {*entries} == {name for name, (pairs, _) in expected.items() if pairs}
    assert len(entries) == 3, "all three are asked here"
    for name, entry in entries.items():
        pairs, misses = expected[name]
        printed = [(pair["task"], pair["mechanism"]) for pair in entry["pairs"]]
        assert printed == [pair[:2] for pair in pairs]
        for pair, (_, _, predicted, trained) in zip(entry["pairs"], pairs, strict=True):
            assert pair["predicted"] == pytest.approx(predicted, rel=1e-9)
            assert pair["trained"] == pytest.approx(trained, rel=1e-9)
        assert len(entry["misses"]) == misses, name
        correlation = ledger.spearman([pair[2] for pair in pairs], [pair[3] for pair in pairs])
        assert entry["correlation"] == (None if correlation is None else pytest.approx(correlation, abs=1e-9))
        bounds = ledger.interval(correlation, len(pairs))
        assert entry["interval"] == (None if bounds is None else pytest.approx(bounds, abs=1e-9))
