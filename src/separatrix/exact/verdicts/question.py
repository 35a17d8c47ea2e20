"""What is asked: one construction and one mechanism, some parameters fixed and others left open."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import admissible, step_of
from separatrix.constructions.reference import sentence, taken
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.ranges import Number
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.mechanisms.load import mechanism_from


@dataclass(frozen=True)
class Question:
    """A construction, a mechanism, and the parameters that stay the same."""

    kind: type[Construction]
    source: Any
    """The mechanism as it was named, or the thing itself."""
    fixed: Mapping[str, object]
    taken: Mapping[str, object] = field(default_factory=dict)
    """Those of `fixed` that were not given, and taken from the construction's reference point."""

    @property
    def reference_remark(self) -> str:
        """A sentence on what was taken from the reference point; empty where nothing was."""
        return sentence(self.taken)

    def schema_of(self, name: str) -> type[Parameters]:
        """The parameter set `name` belongs to: the construction's, or else the mechanism's own."""
        if name not in self.kind.schema.model_fields and name in self.own_schema.model_fields:
            return self.own_schema
        return self.kind.schema

    def is_own(self, name: str) -> bool:
        """Whether `name` is a parameter of the mechanism and not of the construction."""
        return self.schema_of(name) is not self.kind.schema

    @cached_property
    def own_schema(self) -> type[Parameters]:
        """The mechanism's own parameter set."""
        name = self.source.partition(":")[0] if isinstance(self.source, str) else ""
        return MECHANISMS[name].schema if name in MECHANISMS else type(self.mechanism({}).parameters)

    @property
    def label(self) -> str:
        """The mechanism in a heading."""
        return self.source if isinstance(self.source, str) else self._plain.spelled

    @cached_property
    def _plain(self) -> Mechanism:
        return mechanism_from(self.source)

    def mechanism(self, chosen: Mapping[str, Number]) -> Mechanism:
        """The mechanism, with those of the chosen parameters that are its own."""
        settled = self
        for name, value in chosen.items():
            if self.is_own(name):
                settled = settled.settled(name, value)
        return settled._plain

    def settled(self, name: str, value: Number) -> Question:
        """The same question with one more parameter fixed."""
        if self.is_own(name):
            joined = "," if ":" in self.source else ":"
            return replace(self, source=f"{self.source}{joined}{name}={format_exact(value)}")
        return replace(self, fixed={**self.fixed, name: value})

    def point(self, chosen: Mapping[str, Number]) -> Construction:
        """The construction at the chosen parameters, n moved to the nearest value it admits."""
        values = {**self.fixed, **{name: v for name, v in chosen.items() if not self.is_own(name)}}
        return self.kind.read(admissible(self.kind, values))

    def step(self, chosen: Mapping[str, Number]) -> int | None:
        """What n must be a multiple of at the chosen parameters; None where they do not say."""
        own = {name: v for name, v in chosen.items() if not self.is_own(name)}
        return step_of(self.kind, {**self.fixed, **own})

    def numbers(self, chosen: Mapping[str, Number]) -> dict[str, float]:
        """Every parameter of a point that is a number, the mechanism's own among them, as floats."""
        own, point = self.mechanism(chosen).parameters, self.point(chosen).parameters
        given = {**own.filled(), **point.filled()}
        return {name: float(value) for name, value in given.items() if isinstance(value, int | Fraction)}


def question(
    construction: str, mechanism: Any, fixed: Mapping[str, object], varied: Collection[str]
) -> Question:
    """The question, with the names in it looked up, and completed but for what is `varied`."""
    kind = construction_named(construction)
    unknown = next((name for name in fixed if name not in kind.schema.model_fields), None)
    if unknown is not None:
        raise UsageError(kind.schema.unknown(unknown))
    missing = taken(kind, fixed, varied)
    return Question(kind, mechanism, {**fixed, **missing}, missing)
