"""Claims notice sabotage of what they state: every kind of row, in both forms, for either label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from expectations import assert_fails
from separatrix.claims import claim_named, dispersion, formats, network, plain, signs
from separatrix.claims._tools import spike
from separatrix.constructions._base import BlockModel, QueryRow
from separatrix.constructions._blocks import BlockConstruction
from separatrix.constructions.spike import Spike
from separatrix.mechanisms import Linear, Softmax, Taylor
from separatrix.mechanisms.kernels.logn_softmax import LogNSoftmax
from separatrix.numbers.logforms import LogForm, rational

pytestmark = pytest.mark.exhaustive

BLOCK_MODEL = Spike.block_model.__func__  # type: ignore[attr-defined]
ROWS = {"ones": ("spike", "rest"), "identity": ("spike", "mate", "other")}
FIELDS = ("base", "spike", "mate", "own")
Change = Callable[[QueryRow, Any], list[QueryRow]]


def raised(field: str, by: str) -> Change:
    """A logit larger by a small multiple of log n."""

    def change(row: QueryRow, log_n: Any) -> list[QueryRow]:
        factor = rational(Fraction(by)) if isinstance(log_n, LogForm) else float(by)
        return [replace(row, **{field: getattr(row, field) + factor * log_n})]

    return change


def dropped(row: QueryRow, log_n: Any) -> list[QueryRow]:
    return []


def break_row(patch: pytest.MonkeyPatch, form: str, label: int, name: str, change: Change) -> None:
    """Change one kind of row of one label in one form, wherever a closed form is made."""

    def wrong(cls: type[Spike], values: Any, log: Any) -> BlockModel:
        model: BlockModel = BLOCK_MODEL(cls, values, log)
        if values["form"] != form:
            return model
        rows = [*model.rows]
        changed = ([row] if row.name != name else change(row, log(values["n"])) for row in rows[label])
        rows[label] = tuple(row for kept in changed for row in kept)
        return replace(model, rows=(rows[0], rows[1]))

    patch.setattr(Spike, "block_model", classmethod(wrong))


@cache
def enumeration(case: int) -> signs.Enumeration:
    """What literal loops say, which no sabotage of the package changes."""
    mechanism, setting = signs.PINNED[case]
    made = spike(setting)
    return signs.enumerate_signs(made, mechanism, made.n - 1)


def some_point_fails(form: str) -> bool:
    """Whether the claim notices it: at one of its points in this form at the least."""
    return any(
        next(signs.wrong_thresholds(enumeration(i), mechanism, setting), None) is not None
        for i, (mechanism, setting) in enumerate(signs.PINNED)
        if setting["form"] == form
    )


CASES = [
    (form, label, name, field)
    for form, names in ROWS.items()
    for label in (0, 1)
    for name in names
    for field in (*FIELDS, "dropped")
]


@pytest.mark.parametrize(("form", "label", "name", "field"), CASES)
def test_a_wrong_row_is_noticed(
    form: str, label: int, name: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_row(monkeypatch, form, label, name, dropped if field == "dropped" else raised(field, "0.001"))
    assert some_point_fails(form)


def test_the_point_of_the_claim_fails_with_a_wrong_mate_row(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [each for each in signs.PINNED if each[0].name == "linear" and each[1]["form"] == "identity"]
    assert signs.pinned_point(*case).holds
    break_row(monkeypatch, "identity", 1, "mate", raised("spike", "0.05"))
    assert not signs.pinned_point(*case).holds


def test_nothing_is_noticed_where_nothing_is_wrong() -> None:
    assert not some_point_fails("ones")
    assert not some_point_fails("identity")


def flatter_softmax(patch: pytest.MonkeyPatch) -> None:
    """Every logit 3 % too small, in balls, in float64 and on tokens."""
    ratio, log_ratio, call = Softmax.ratio, Softmax.log_ratio, Softmax.__call__
    patch.setattr(Softmax, "ratio", lambda self, b, s: ratio(self, b, rational(Fraction(97, 100)) * s))
    patch.setattr(Softmax, "log_ratio", lambda self, b, s: log_ratio(self, b, 0.97 * s))
    patch.setattr(Softmax, "__call__", lambda self, q, *more, **named: call(self, 0.97 * q, *more, **named))


def one_vector_less(patch: pytest.MonkeyPatch) -> None:
    """P of m - 1 sign vectors in the place of m."""
    on_grid = network.on_grid
    patch.setattr(
        network, "on_grid", lambda *at, m, **more: on_grid(*at, m=[max(k - 1, 1) for k in m], **more)
    )


def lost_a_step_later(patch: pytest.MonkeyPatch) -> None:
    lost_from = formats.lost_from
    patch.setattr(
        formats, "lost_from", lambda at, unit: {k: n and n + at.step for k, n in lost_from(at, unit).items()}
    )


def one_order_more(patch: pytest.MonkeyPatch) -> None:
    log_ratio = Taylor.log_ratio
    patch.setattr(
        Taylor, "log_ratio", lambda self, b, s: log_ratio(Taylor(order=self.parameters.order + 1), b, s)
    )


def other_last_column(patch: pytest.MonkeyPatch) -> None:
    matrix = BlockConstruction.matrix

    def wrong(self: BlockConstruction, *more: Any) -> Any:
        tokens = matrix(self, *more).clone()
        tokens[:, -1] *= 1.0001
        return tokens

    patch.setattr(BlockConstruction, "matrix", wrong)


SUBTLE: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "width": one_vector_less,
    "spike-shape": other_last_column,
    "number-formats": lost_a_step_later,
    "taylor-order": one_order_more,
    "dispersion-blind": flatter_softmax,
    "sparse-averaging": flatter_softmax,
    "single-location": flatter_softmax,
}
"""Faults of a few per cent or of one step, besides the coarse ones of test_claims and test_more_claims."""


@pytest.mark.parametrize("name", SUBTLE)
def test_a_small_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SUBTLE[name](monkeypatch)
    assert_fails(claim_named(name))


def test_a_small_fault_of_linear_is_noticed_in_the_plain_case(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(plain.counted_point(n, False).holds for n in plain.COUNTED)
    log_ratio = Linear.log_ratio
    monkeypatch.setattr(Linear, "log_ratio", lambda self, b, s: log_ratio(self, b, 1.01 * s))
    assert not all(plain.counted_point(n, False).holds for n in plain.COUNTED)


def test_a_small_fault_of_the_repaired_softmax_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dispersion.repair_point("logn-softmax", "3/2", 1000).holds
    call = LogNSoftmax.__call__
    monkeypatch.setattr(
        LogNSoftmax, "__call__", lambda self, q, *more, **named: call(self, 0.97 * q, *more, **named)
    )
    assert not dispersion.repair_point("logn-softmax", "3/2", 1000).holds
