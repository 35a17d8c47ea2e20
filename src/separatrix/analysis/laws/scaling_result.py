"""Scalings as results: the law of growth, and the values behind it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from separatrix.analysis.laws.closed_forms import ClosedForm
from separatrix.analysis.laws.powerlaw import Law
from separatrix.analysis.laws.quantities import Value
from separatrix.core.documents import Document, Hidden, Inlined, shown, shown_as
from separatrix.core.numbers import parse_integer
from separatrix.core.parameters.ranges import Number, split_axes
from separatrix.core.result import Result, Row
from separatrix.exact.outputs.growth_laws import GrowthLaw
from separatrix.exact.verdicts.question import Question

MAX_NAMED = 4
"""A summary names at most this many mechanisms individually."""


@dataclass(frozen=True, repr=False)
class Scaling(Result):
    """A quantity at growing values of one parameter, and the law of its growth."""

    kind: ClassVar[str] = "scaling"
    question: Inlined[Question]
    parameter: str
    """The parameter that grows."""
    quantity: str
    values: Hidden[tuple[Value, ...]]
    law: Inlined[Law]
    closed_form: ClosedForm | None
    """The growth by a formula, if one is known."""
    remark: str
    """Values that were left out or rounded, and why; empty if none was."""
    proved: GrowthLaw | None = None
    """Bounds that are proved for every n from the first value on, if some are; a fit proves nothing."""

    @shown
    def engine(self) -> str:
        """The engines behind the values."""
        return ", ".join(dict.fromkeys(value.engine for value in self.values))

    @shown
    def evidence(self) -> str:
        """The evidence for the values."""
        return "; ".join(dict.fromkeys(value.evidence for value in self.values))

    @shown
    def formula(self) -> str | None:
        """The form that fits, with the name of the parameter."""
        return None if self.law.form is None else re.sub(r"\bx\b", self.parameter, self.law.form.formula)

    @shown_as("values")
    def value_rows(self) -> Sequence[Mapping[str, Number | float | None]]:
        """For each value, the parameter and the quantity under their names, n_used, low and high."""
        return [{**row, self.parameter: value.x} for row, value in zip(self.rows(), self.values, strict=True)]

    @shown_as("slopes")
    def slope_rows(self) -> Sequence[Mapping[str, float]]:
        """The local slopes between values."""
        return [{self.parameter: x, "slope": slope} for x, slope in self.law.slopes]

    @property
    def lengths_differ(self) -> bool:
        """Whether another parameter grew, and n had to be rounded to an admissible value."""
        if self.parameter == "n" or "n" not in self.question.fixed:
            return False
        n = parse_integer(self.question.fixed["n"], "n")
        return any(value.n not in (None, n) for value in self.values)

    @property
    def summary(self) -> str:
        """The law and its exponent."""
        name = f"{self.question.label} on {self.question.construction}: {self.quantity} against {self.parameter}"
        return f"{name}: {self.law.name}, exponent {self.law.exponent_text}"

    def rows(self) -> list[Row]:
        """One row for each value."""
        rows = []
        for value in self.values:
            ends = dict(zip(("low", "high"), value.ends, strict=True))
            rows.append({self.parameter: float(value.x), "n_used": value.n, self.quantity: value.y, **ends})
        return rows


@dataclass(frozen=True)
class ScalingRow(Document):
    """The scaling of one of several mechanisms."""

    scaling: Inlined[Scaling]
    family: str

    @property
    def mechanism(self) -> str:
        """The mechanism."""
        return self.scaling.question.label


@dataclass(frozen=True)
class NoScaling(Document):
    """A mechanism whose scaling could not be computed, and why."""

    mechanism: str
    family: str
    reason: str
    exponent: None = None
    interval: None = None
    power_law: None = None
    scaling: ClassVar[None] = None


@dataclass(frozen=True, repr=False)
class Scalings(Result):
    """The growth of a quantity for several mechanisms; `result["linear"]` is that of one."""

    kind: ClassVar[str] = "scalings"
    construction: str
    quantity: str
    parameters: Mapping[str, str]
    """The parameters as they were given."""
    results: Hidden[tuple[ScalingRow | NoScaling, ...]]

    @shown_as("rows")
    def result_rows(self) -> Sequence[ScalingRow | NoScaling]:
        """The result of each mechanism."""
        return self.results

    @property
    def parameter(self) -> str:
        """The parameter that grows."""
        return next(iter(split_axes(self.parameters)[0]))

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The scalings of the mechanisms that have values."""
        return tuple(row.scaling for row in self.results if row.scaling is not None)

    def __iter__(self) -> Iterator[ScalingRow | NoScaling]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, mechanism: str | int) -> ScalingRow | NoScaling:
        if isinstance(mechanism, int):
            return self.results[mechanism]
        return {row.mechanism: row for row in self.results}[mechanism]

    @property
    def summary(self) -> str:
        """The exponent of each mechanism; for many mechanisms, the number of them with each law."""
        rows = self.notebook_rows()
        if len(rows) > MAX_NAMED:
            laws = ", ".join(f"{law} {count}" for law, count in Counter(row["law"] for row in rows).most_common())
            return f"{len(rows)} mechanisms on {self.construction}: {self.quantity}: {laws}"
        exponents = ", ".join(f"{row['mechanism']} {row['exponent'] or row['law']}" for row in rows)
        return f"{self.construction}: exponents of {self.quantity}: {exponents}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and value."""
        return [{"mechanism": result.question.label, **row} for result in self.scalings for row in result.rows()]

    def notebook_rows(self) -> list[Row]:
        """One row for each mechanism."""
        return [
            {
                "mechanism": row.mechanism,
                "law": row.scaling.law.name if row.scaling else "not computed",
                "exponent": row.scaling.law.exponent_text if row.scaling else None,
                "formula": row.scaling.formula if row.scaling else None,
            }
            for row in self.results
        ]
