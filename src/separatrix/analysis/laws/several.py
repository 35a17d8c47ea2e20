"""How a quantity grows for several mechanisms, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

from separatrix.analysis.laws.scaling import scaling as scaling_of_one
from separatrix.analysis.laws.scaling import table
from separatrix.analysis.laws.scaling_result import Scaling, ScalingRow
from separatrix.core.parameters import UsageError, all_parameters
from separatrix.core.parameters.ranges import split_axes
from separatrix.core.parameters.words import listed_mechanisms
from separatrix.core.result import Result, Row
from separatrix.exact.engines import Sampling

if TYPE_CHECKING:
    from separatrix.core.schemas import questions as documents

ALL = "all"
"""One of each mechanism."""


@dataclass(frozen=True, repr=False)
class Scalings(Result):
    """How a quantity grows for several mechanisms; `found["linear"]` is that of one."""

    kind: ClassVar[str] = "scalings"
    construction: str
    of: str
    parameters: Mapping[str, str]
    """As they were given."""
    found: tuple[ScalingRow, ...]

    @property
    def name(self) -> str:
        """The parameter that grows."""
        return next(iter(split_axes(self.parameters)[0]))

    @property
    def answers(self) -> tuple[Scaling, ...]:
        """Those that have values."""
        return tuple(each.scaling for each in self.found if each.scaling is not None)

    def __iter__(self) -> Iterator[ScalingRow]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, mechanism: str | int) -> ScalingRow:
        if isinstance(mechanism, int):
            return self.found[mechanism]
        return {each.mechanism: each for each in self.found}[mechanism]

    @property
    def summary(self) -> str:
        """The exponent of each mechanism, or how many have which law where they are many."""
        laws = {each.mechanism: each.scaling.law if each.scaling else None for each in self.found}
        if len(laws) > 4:
            counts = Counter("not computed" if law is None else law.name for law in laws.values())
            said = ", ".join(f"{law} {count}" for law, count in counts.most_common())
            return f"{len(laws)} mechanisms on {self.construction}: {self.of}: {said}"
        said = ", ".join(f"{name} {law.spelled if law else 'not computed'}" for name, law in laws.items())
        return f"{self.construction}: exponents of {self.of}: {said}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and value."""
        return [{"mechanism": answer.asked.label, **row} for answer in self.answers for row in answer.rows()]

    def notebook_rows(self) -> list[Row]:
        """One row for each mechanism."""
        return [
            {
                "mechanism": each.mechanism,
                "law": each.scaling.law.name if each.scaling else "not computed",
                "exponent": each.scaling.law.spelled if each.scaling else None,
                "formula": each.scaling.formula if each.scaling else None,
            }
            for each in self.found
        ]

    def as_json(self) -> documents.Scalings:
        """What `separatrix scaling --json` prints for several mechanisms."""
        return {
            "construction": self.construction,
            "quantity": self.of,
            "parameters": dict(self.parameters),
            "rows": [each.as_json() for each in self.found],
        }


@overload
def scaling(
    construction: str,
    mechanism: list[Any] | tuple[Any, ...],
    parameters: Mapping[str, object] | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Scalings: ...


@overload
def scaling(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Scaling: ...


def scaling(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Scaling | Scalings:
    """How a quantity grows with one parameter: an exponent with its interval, if it is a power law.

    **Arguments:**

    - `construction`, `engine`, `sampling`: as for `verdict`.
    - `mechanism`: as for `verdict`; several, `"softmax,linear"`, `"all"` or a list, give `Scalings`.
    - `parameters`, `named`: one of them as `"start:stop:count"`, `"start:stop:count:log"`, a list or a NumPy
      array; those that are missing are taken from the construction's reference point, unless it is cost
      that grows.
    - `of`: one of QUANTITIES, or of COSTS, which are measured by running the mechanism.
    - `tell`: hears how far it is.

    >>> found = scaling("spike", "linear", n="1e3:1e9:7:log",
    ...                 d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1")
    >>> found.law.power_law, round(found.law.exponent, 6), found.formula
    (True, -1.0, '5.98967 n^-1')
    >>> scaling("spike", ["linear", "power:beta=2"], n=[10**3, 10**4, 10**5, 10**6])["linear"].scaling.formula
    '5.98965 n^-1'
    """
    chosen = None if isinstance(mechanism, str) and mechanism == ALL else listed_mechanisms(mechanism)
    if chosen == []:
        raise UsageError("scaling needs a mechanism; write for example softmax, softmax,linear or all")
    given = all_parameters(parameters, named)
    how: dict[str, Any] = {"of": of, "engine": engine, "sampling": sampling, "tell": tell}
    if chosen is not None and len(chosen) == 1 and not isinstance(mechanism, list | tuple):
        return scaling_of_one(construction, chosen[0], given, **how)
    axes, _ = split_axes(given)
    typed = {name: axes.get(name, str(value)) for name, value in given.items()}
    return Scalings(construction, of, typed, tuple(table(construction, given, chosen, **how)))
