"""A question about one construction and one mechanism, with some parameters fixed and others varied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from separatrix.constructions import Construction, construction_named
from separatrix.constructions.lengths import admissible, step_of
from separatrix.constructions.reference import format_defaults_sentence, reference_defaults
from separatrix.core.documents import Document, Hidden, shown, shown_as
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.ranges import Number
from separatrix.mechanisms import MECHANISMS, Mechanism, mechanism_from


@dataclass(frozen=True)
class Question(Document):
    """A construction, a mechanism, and the fixed parameters."""

    kind: Hidden[type[Construction]]
    source: Hidden[Any]
    """The mechanism as it was named, or the object itself."""
    fixed: Hidden[Mapping[str, object]]
    taken: Hidden[Mapping[str, object]] = field(default_factory=dict)
    """The fixed parameters that were taken from the construction's reference point."""

    @shown
    def construction(self) -> str:
        """The name of the construction."""
        return self.kind.name

    @shown_as("mechanism")
    def label(self) -> str:
        """The mechanism as it was named, or its spelling."""
        return self.source if isinstance(self.source, str) else self._plain.spelled

    @shown
    def parameters(self) -> Mapping[str, str]:
        """The fixed parameters."""
        return {name: str(value) for name, value in self.fixed.items()}

    @shown_as("taken")
    def reference_parameters(self) -> Mapping[str, str]:
        """The fixed parameters that were taken from the construction's reference point."""
        return {name: str(value) for name, value in self.taken.items()}

    @property
    def reference_remark(self) -> str:
        """A sentence that lists parameters taken from the reference point; empty if there are none."""
        return format_defaults_sentence(self.taken)

    def schema_of(self, name: str) -> type[Parameters]:
        """Return the parameter set that `name` belongs to: the construction's, or the mechanism's."""
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

    @cached_property
    def _plain(self) -> Mechanism:
        return mechanism_from(self.source)

    def mechanism(self, chosen: Mapping[str, Number]) -> Mechanism:
        """Return the mechanism with those of the chosen parameters that belong to it."""
        question = self
        for name, value in chosen.items():
            if self.is_own(name):
                question = question.with_parameter(name, value)
        return question._plain

    def with_parameter(self, name: str, value: Number) -> Question:
        """Return the question with one more parameter fixed."""
        if self.is_own(name):
            separator = "," if ":" in self.source else ":"
            return replace(self, source=f"{self.source}{separator}{name}={format_exact(value)}")
        return replace(self, fixed={**self.fixed, name: value})

    def point(self, chosen: Mapping[str, Number]) -> Construction:
        """Return the construction at the chosen parameters, with n moved to the nearest admissible value."""
        values = {**self.fixed, **{name: v for name, v in chosen.items() if not self.is_own(name)}}
        return self.kind.read(admissible(self.kind, values))

    def step(self, chosen: Mapping[str, Number]) -> int | None:
        """Return the number that n must be a multiple of; None if the parameters do not determine it."""
        values = {name: v for name, v in chosen.items() if not self.is_own(name)}
        return step_of(self.kind, {**self.fixed, **values})

    def numbers(self, chosen: Mapping[str, Number]) -> dict[str, float]:
        """Return all numeric parameters of a point, including the mechanism's, as floats."""
        mechanism_parameters, point = self.mechanism(chosen).parameters, self.point(chosen).parameters
        values = {**mechanism_parameters.complete_values(), **point.complete_values()}
        return {name: float(value) for name, value in values.items() if isinstance(value, int | Fraction)}


def question(construction: str, mechanism: Any, fixed: Mapping[str, object], varied: Collection[str]) -> Question:
    """Build a question; missing parameters, except the varied ones, come from the reference point."""
    kind = construction_named(construction)
    unknown = next((name for name in fixed if name not in kind.schema.model_fields), None)
    if unknown is not None:
        raise UsageError(kind.schema.describe_unknown(unknown))
    missing = reference_defaults(kind, fixed, varied)
    return Question(kind, mechanism, {**fixed, **missing}, missing)
