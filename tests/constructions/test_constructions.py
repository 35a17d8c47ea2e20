"""Constructions: dense tokens, groups and closed forms are three views of one thing."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import separatrix
from cases import BASE, spike
from separatrix.constructions import CONSTRUCTIONS, Construction, construction_named
from separatrix.core.parameters import UsageError

POINTS = [
    spike(n=30, d=7),
    spike(n=30, d=7, form="identity"),
    spike(n=5, d=7),
    construction_named("cross").read({**BASE, "n": 30, "d": 7, "r_Q": "0.9"}),
    construction_named("plain").read({"n": 30, "m": 4}),
]


def identify(point: Construction) -> str:
    return f"{point.name}-{point.parameters.as_json().get('form', '')}-n{point.n}"


@pytest.mark.parametrize("point", POINTS, ids=identify)
@pytest.mark.parametrize("label", [0, 1])
def test_groups_are_the_distinct_tokens_with_their_counts(point: Construction, label: int) -> None:
    dense, groups = point.dense(label, 0, torch.float64), point.token_groups(label, torch.float64)
    assert groups.counts is not None
    assert groups.counts.sum() == point.n
    assert len(groups.keys) == point.group_count() or point.n == 5
    rows = groups.counts.long()
    torch.testing.assert_close(sort_rows(groups.keys.repeat_interleave(rows, 0)), sort_rows(dense.keys))
    if dense.values is not None and groups.values is not None:
        literal = groups.values.repeat_interleave(rows, 0)
        torch.testing.assert_close(sort_rows(literal), sort_rows(dense.values))


def sort_rows(rows: torch.Tensor) -> torch.Tensor:
    order = np.lexsort(rows.numpy().round(12).T)
    return rows[order]


@pytest.mark.parametrize("spike_at", [0, 7, 29])
def test_the_spike_matrix_is_as_described(spike_at: int) -> None:
    point = spike(n=30, d=7)
    unit = math.sqrt(math.log(30))
    tokens = point.dense(1, spike_at, torch.float64).values
    assert tokens is not None
    assert (tokens[:, 0] != 0).nonzero().flatten().tolist() == [spike_at]
    assert tokens[spike_at, 0].item() == pytest.approx(1.2 * unit)
    assert torch.equal(tokens[:, 6], torch.full((30,), 0.1 * unit, dtype=torch.float64))
    blocks = tokens[:, 1:6]
    assert torch.equal((blocks != 0).sum(0), torch.full((5,), 6))
    assert torch.equal((blocks != 0).sum(1), torch.ones(30, dtype=torch.long))


def test_d0_and_d1_differ_in_one_entry() -> None:
    point = spike(n=30, d=7)
    d0, d1 = (point.dense(label, 4, torch.float64).values for label in (0, 1))
    assert d0 is not None
    assert d1 is not None
    assert (d0 != d1).sum() == 1


def test_the_forms_are_products_with_x() -> None:
    """Queries times keys are A X Aᵀ with X = 11ᵀ or the identity."""
    for form, weights in (("ones", torch.ones(7, 7)), ("identity", torch.eye(7))):
        tokens = spike(n=30, d=7, form=form).dense(1, 3, torch.float64)
        assert tokens.values is not None
        literal = tokens.values @ weights.double() @ tokens.values.T
        torch.testing.assert_close(tokens.queries @ tokens.keys.T, literal)


def test_thresholds() -> None:
    assert spike().threshold == pytest.approx(0.2 * math.sqrt(math.log(1000)))
    assert spike(tau="0.5").threshold == pytest.approx(0.5 * math.sqrt(math.log(1000)))
    assert construction_named("plain").read({"n": 30, "m": 4}).threshold == 0.25


def test_plain_spread_has_no_closed_form() -> None:
    point = construction_named("plain").read({"n": 30, "m": 4, "spread": "0.1"})
    values = {name: np.asarray(float(value)) for name, value in point.parameters.complete_values().items()}
    assert point.block_model(values, np.log) is None
    keys = point.dense(0, 0, torch.float64).keys
    assert keys.min().item() == pytest.approx(math.log(1.4))
    assert keys.max().item() == pytest.approx(math.log(1.6))


def test_unknown_constructions_are_answered_with_the_list() -> None:
    with pytest.raises(UsageError, match=r"no construction spke \(did you mean spike\?\)"):
        construction_named("spke")


@pytest.mark.parametrize("kind", CONSTRUCTIONS.values(), ids=CONSTRUCTIONS)
def test_every_construction_explains_itself(kind: type[Construction]) -> None:
    assert len(kind.description) > 100
    assert any(tag in kind.provenance for tag in ("[paper]", "[rec]", "[ours]"))


NEW = """\"\"\"One token carries a in D1, and none in D0.\"\"\"

from typing import ClassVar

from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup


class Lone(ExactConstruction):
    name = "lone"
    title = "One token carries 1 in D1."
    section = (6, 2)
    provenance = "[ours] tests"
    description = "n tokens of one logit; one of them carries 1 in D1."
    example: ClassVar[dict[str, object]] = {"n": 10, "m": 12}
    logit_base = None

    def describe(self, label):
        lone = TokenGroup((ONE,), (ONE * label,))
        return Description(((ONE,),), (lone, TokenGroup((ONE,), (ZERO,), self.n - 1)))
"""
COMMANDS = """
from separatrix.cli.application import app

for words in ("list constructions --json", "verdict lone hardmax n=10 m=12 --json"):
    app(words.split(), standalone_mode=False)
    print("\\f")
"""


def test_one_file_adds_a_construction(tmp_path: Path) -> None:
    """In a copy of the sources: the list and a verdict know it with no other change, at its section."""
    shutil.copytree(
        Path(separatrix.__file__).parent, tmp_path / "separatrix", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "separatrix/constructions/lone.py").write_text(NEW)
    process = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    rows, verdict = (json.loads(row) for row in process.stdout.split("\f")[:2])
    names = list(CONSTRUCTIONS)
    before = names.index("duplication") + 1
    assert [row["name"] for row in rows] == [*names[:before], "lone", *names[before:]]
    assert (verdict["construction"], verdict["verdict"]) == ("lone", "blind")


def test_constructions_are_in_the_order_of_the_theory() -> None:
    assert list(CONSTRUCTIONS)[:3] == ["spike", "plain", "cross"]
    sections = [kind.section for kind in CONSTRUCTIONS.values()]
    assert sections == sorted(set(sections))
