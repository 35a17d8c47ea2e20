"""The order of the atlas, and what its cells say of the reference point."""

from __future__ import annotations

from typing import Any

import pytest

from separatrix.analysis.cards.assessment import assess
from separatrix.analysis.cards.atlas import Atlas, atlas
from separatrix.analysis.cards.card import Card
from separatrix.analysis.cards.construction_result import AtlasVerdict, ConstructionResult
from separatrix.core.errors import UsageError

CLOSED = "softmax,linear,power:beta=2"


def test_sorted_by_a_construction_what_tells_it_apart_most_surely_comes_first() -> None:
    rows = atlas(CLOSED, "spike,spikes", sort="spike,identity").rows()
    found = [row for row in rows if row["construction"] == "spike, identity"]
    chances = [row["distinguish"] for row in found]
    assert chances == sorted(chances, reverse=True)
    assert found[0]["mechanism"] == "softmax"
    assert atlas(CLOSED, "spike", sort="spike").rows() == atlas(CLOSED, "spike", sort="spike, ones").rows()


@pytest.mark.parametrize(
    ("constructions", "sort", "said"),
    [
        ("spike", "spik", "there is no order spik .did you mean spike"),
        ("spike", "recall", "recall is not among the selected constructions"),
    ],
)
def test_an_order_that_there_is_not_is_refused(constructions: str, sort: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        atlas("softmax", constructions, sort=sort)


def test_what_a_verdict_says_is_the_beginning_of_its_cell() -> None:
    found = atlas("linear", "injectivity,averaging")
    for row, cell in zip(found.rows(), found.mechanisms[0].results, strict=True):
        assert isinstance(cell, ConstructionResult)
        assert tuple(row) == Atlas.columns
        said = vars(AtlasVerdict.from_verdict(cell.name, cell.verdict))
        assert tuple(said) == Atlas.columns[: len(said)]
        assert said == {name: row[name] for name in said}
        assert row["bits"] == cell.verdict.bits


@pytest.mark.usefixtures("few_checks")
def test_a_card_is_given_as_far_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix.analysis.cards import assessment, card
    from separatrix.analysis.cards.construction_result import reference_points

    some = dict(list(reference_points().items())[4:6])
    monkeypatch.setattr(card, "reference_points", lambda: some)
    monkeypatch.setattr(assessment, "reference_points", lambda: some)
    monkeypatch.setattr("separatrix.analysis.costs.cost.LENGTHS", (64, 128))
    seen: list[Card] = []
    found = assess("hardmax", on_update=seen.append)
    assert [len(each.constructions) for each in seen] == [0, 1, 2, 2]
    assert found.finished
    assert not any(each.finished for each in seen)
    assert seen[1].reading.startswith("Not finished: 1 of 2 constructions were tested. hardmax keeps")
    documents: list[Any] = [each.as_json() for each in (*seen, found)]
    assert [each["finished"] for each in documents] == [False, False, False, False, True]
    assert len(assess("hardmax", quick=True, on_update=seen.append).constructions) == 0
    assert seen[-1].finished
