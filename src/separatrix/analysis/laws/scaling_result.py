"""A law of growth that was found, and the values behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from separatrix.analysis.laws.closed_forms import ClosedForm
from separatrix.analysis.laws.powerlaw import Law
from separatrix.analysis.laws.quantities import Noise, Value
from separatrix.core.numbers import parse_integer
from separatrix.core.parameters.model import printed
from separatrix.core.result import Result, Row
from separatrix.exact.verdicts.question import Question

if TYPE_CHECKING:
    from separatrix.core.schemas import questions as documents


@dataclass(frozen=True, repr=False)
class Scaling(Result):
    """A quantity at growing values of one parameter, and the law of its growth."""

    kind: ClassVar[str] = "scaling"
    asked: Question
    name: str
    """The parameter that grows."""
    of: str
    values: tuple[Value, ...]
    law: Law
    closed: ClosedForm | None
    remark: str
    """What was left out or moved, and why; empty where nothing was."""

    @property
    def engine(self) -> str:
        """The engines behind the values."""
        return ", ".join(dict.fromkeys(value.engine for value in self.values))

    @property
    def evidence(self) -> str:
        """How the values are known."""
        return "; ".join(dict.fromkeys(value.evidence for value in self.values))

    @property
    def lengths_differ(self) -> bool:
        """Whether n was moved to admissible values while another parameter grew."""
        if self.name == "n" or "n" not in self.asked.fixed:
            return False
        wanted = parse_integer(self.asked.fixed["n"], "n")
        return any(value.n not in (None, wanted) for value in self.values)

    @property
    def formula(self) -> str | None:
        """The form that fits, with the parameter's own name."""
        return None if self.law.form is None else _named(self.law.form.formula, self.name)

    @property
    def summary(self) -> str:
        """The law and its exponent."""
        name = f"{self.asked.label} on {self.asked.kind.name}"
        return f"{name}: {self.of} against {self.name}: {self.law.name}, exponent {self.law.spelled}"

    def rows(self) -> list[Row]:
        """One row for each value."""
        return [
            {self.name: float(value.x), "n_used": value.n, self.of: value.y, "low": low, "high": high}
            for value in self.values
            for low, high in [_ends(value)]
        ]

    def as_json(self) -> documents.Scaling:
        """What `separatrix scaling --json` prints."""
        law = self.law
        return {
            "construction": self.asked.kind.name,
            "mechanism": self.asked.label,
            "parameters": {name: str(value) for name, value in self.asked.fixed.items()},
            "taken": {name: str(value) for name, value in self.asked.taken.items()},
            "parameter": self.name,
            "quantity": self.of,
            "exponent": law.exponent,
            "interval": list(law.interval),
            "interval_is": law.interval_is,
            "power_law": law.power_law,
            "reason": law.reason,
            "form": None if law.form is None else law.form.name,
            "formula": self.formula,
            "since": law.since,
            "values": [
                {self.name: printed(value.x), "n_used": value.n, self.of: value.y, "low": low, "high": high}
                for value in self.values
                for low, high in [_ends(value)]
            ],
            "slopes": [{self.name: x, "slope": slope} for x, slope in law.slopes],
            "engine": self.engine,
            "evidence": self.evidence,
            "remark": self.remark,
            "closed_form": None
            if self.closed is None
            else {
                "formula": self.closed.formula,
                "tag": self.closed.tag,
                "limit": self.closed.limit,
                "exponent": self.closed.exponent,
            },
        }


@dataclass(frozen=True)
class ScalingRow:
    """One mechanism in a table: its scaling, or why there is none."""

    mechanism: str
    family: str
    scaling: Scaling | None
    why: str

    def as_json(self) -> documents.GrowthRow | documents.NoGrowth:
        """The row as `separatrix scaling --json` prints it."""
        head = {"mechanism": self.mechanism, "family": self.family}
        without = {"exponent": None, "interval": None, "power_law": None, "reason": self.why}
        return cast(
            "documents.GrowthRow | documents.NoGrowth",
            {**head, **(without if self.scaling is None else self.scaling.as_json())},
        )


def _ends(value: Value) -> tuple[float, float]:
    return (value.low, value.high) if value.noise is Noise.INTERVAL else (value.y, value.y)


def _named(formula: str, name: str) -> str:
    """The formula with the parameter for its x."""
    return re.sub(r"\bx\b", name, formula)
