"""Constructions: dense tokens, groups and closed forms are three views of one thing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cases import BASE, spike
from separatrix.constructions import CONSTRUCTIONS, Construction, construction_named
from separatrix.parameters import UsageError

POINTS = [
    spike(n=30, d=7),
    spike(n=30, d=7, form="identity"),
    spike(n=5, d=7),
    construction_named("cross").read({**BASE, "n": 30, "d": 7, "r_Q": "0.9"}),
    construction_named("plain").read({"n": 30, "m": 4}),
]


def identify(point: Construction) -> str:
    return f"{point.name}-{point.parameters.shown().get('form', '')}-n{point.n}"


@pytest.mark.parametrize("point", POINTS, ids=identify)
@pytest.mark.parametrize("label", [0, 1])
def test_groups_are_the_distinct_tokens_with_their_counts(point: Construction, label: int) -> None:
    dense, groups = point.dense(label, 0, torch.float64), point.groups(label, torch.float64)
    assert groups.counts is not None
    assert groups.counts.sum() == point.n
    assert len(groups.keys) == point.group_count() or point.n == 5
    rows = groups.counts.long()
    torch.testing.assert_close(_sorted(groups.keys.repeat_interleave(rows, 0)), _sorted(dense.keys))
    if dense.values is not None and groups.values is not None:
        literal = groups.values.repeat_interleave(rows, 0)
        torch.testing.assert_close(_sorted(literal), _sorted(dense.values))


def _sorted(rows: torch.Tensor) -> torch.Tensor:
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
    values = {name: np.asarray(float(value)) for name, value in point.parameters.values().items()}
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
