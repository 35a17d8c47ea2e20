"""Claims notice sabotage of what they state: every kind of row, in both forms, for either label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from separatrix.claims import signs
from separatrix.claims._tools import spike
from separatrix.constructions._base import BlockModel, QueryRow
from separatrix.constructions.spike import Spike
from separatrix.numbers.logforms import LogForm, rational

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
