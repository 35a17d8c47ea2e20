"""What changed from one sweep to another: the same questions, and whether they have the same answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

QUESTION = (
    "construction",
    "mechanism",
    "parameters",
    "asked",
    "delta",
    "draws",
    "seed",
    "confidence",
    "dtype",
    "until_decided",
)
"""Cells that agree in all of these ask the same."""
CLOSE = 1e-12
"""Exact probabilities that differ by no more are the same: engines round."""
MOST_CHANGES = 100


@dataclass(frozen=True)
class Answer:
    """What one sweep says."""

    word: str
    """The verdict; how the cell ended where it has none."""
    distinguish: float | None
    low: float | None
    high: float | None
    """Equal to `low` where P is exact."""
    engine: str | None


@dataclass(frozen=True)
class Change:
    """One question with two answers."""

    construction: str
    mechanism: str
    parameters: Mapping[str, str]
    how: Mapping[str, Any]
    """The engine asked for, delta, and how it was to be sampled."""
    one: Answer
    other: Answer
    other_verdict: bool
    other_probability: bool

    @property
    def asked(self) -> dict[str, str]:
        """Parameters and how, as text."""
        return {name: str(value) for name, value in (*self.parameters.items(), *self.how.items())}


@dataclass(frozen=True)
class Comparison:
    """How many cells agree; a cell can have another verdict and another P at once."""

    same: int
    other_verdict: int
    other_probability: int
    """Exact against exact by more than 1e-12; where one is sampled, their intervals do not overlap."""
    changed: int
    """Another verdict, another P, or both."""
    only_one: int
    only_other: int
    largest: tuple[Change, ...]
    """At most a hundred, the largest difference of P first; those without a P in one sweep last."""

    @property
    def identical(self) -> bool:
        """Whether both have the same cells with the same answers."""
        return self.changed == self.only_one == self.only_other == 0

    @property
    def common(self) -> dict[str, str]:
        """What all of the largest changes ask alike; only the rest tells them apart."""
        asked = [change.asked for change in self.largest]
        first = asked[0] if len(asked) > 1 else {}
        return {name: value for name, value in first.items() if all(x.get(name) == value for x in asked)}

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {"identical": self.identical, **asdict(self)}


def compare(one: pl.DataFrame, other: pl.DataFrame) -> Comparison:
    """Compare two frames of stored cells; a cell that stands in several parts counts once."""
    import polars as pl

    left, right = _answers(one), _answers(other)
    both = left.join(right, on="question", suffix="_other", maintain_order="left")
    exact = (pl.col("low") == pl.col("high")) & (pl.col("low_other") == pl.col("high_other"))
    difference = (pl.col("distinguish") - pl.col("distinguish_other")).abs()
    apart = (pl.col("low") > pl.col("high_other")) | (pl.col("low_other") > pl.col("high"))
    both = both.with_columns(
        difference=difference,
        verdict_differs=pl.col("word") != pl.col("word_other"),
        probability_differs=pl.when(exact).then(difference > CLOSE).otherwise(apart).fill_null(False),
    )
    changed = both.filter(pl.col("verdict_differs") | pl.col("probability_differs"))
    largest = changed.sort("difference", descending=True, nulls_last=True, maintain_order=True)
    return Comparison(
        same=both.height - changed.height,
        other_verdict=int(both["verdict_differs"].sum()),
        other_probability=int(both["probability_differs"].sum()),
        changed=changed.height,
        only_one=left.height - both.height,
        only_other=right.height - both.height,
        largest=tuple(map(_change, largest.head(MOST_CHANGES).iter_rows(named=True))),
    )


def _answers(cells: pl.DataFrame) -> pl.DataFrame:
    """One row a question; an interval that is missing is taken to be P itself."""
    import polars as pl

    texts = cells["parameters"].to_list()
    ordered = pl.Series("parameters", map(in_order, texts), dtype=pl.String)
    known = pl.col("distinguish").fill_nan(None)
    asked = cells.with_columns(ordered, distinguish=known, spelled=cells["parameters"])
    return asked.select(
        question=pl.struct(QUESTION).struct.json_encode(),
        spelled="spelled",
        distinguish="distinguish",
        low=pl.coalesce(pl.col("low").fill_nan(None), "distinguish"),
        high=pl.coalesce(pl.col("high").fill_nan(None), "distinguish"),
        engine="engine",
        word=pl.when(known.is_not_null()).then("verdict").otherwise("status").fill_null("none"),
    ).unique("question", keep="first", maintain_order=True)


def in_order(parameters: str) -> str:
    """Parameters as JSON with their names in order, so that equal ones are spelled the same.

    >>> in_order('{"n": "10", "a1": "1/3"}')
    '{"a1": "1/3", "n": "10"}'
    """
    return json.dumps(json.loads(parameters), sort_keys=True, ensure_ascii=False)


def _change(row: Mapping[str, Any]) -> Change:
    question = json.loads(row["question"])
    how = {name: question[name] for name in QUESTION[3:] if question[name] is not None}
    one, other = (
        Answer(**{name: row[f"{name}{end}"] for name in ("word", "distinguish", "low", "high", "engine")})
        for end in ("", "_other")
    )
    return Change(
        question["construction"],
        question["mechanism"],
        json.loads(row["spelled"]),
        how,
        one,
        other,
        row["verdict_differs"],
        row["probability_differs"],
    )
