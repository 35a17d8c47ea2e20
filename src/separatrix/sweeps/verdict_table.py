"""Tables of verdicts in a plan: constructions × mechanisms × parameters × seeds, and how to answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import count, product, repeat
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo

from separatrix.constructions import CONSTRUCTIONS, Construction, construction_named
from separatrix.constructions.reference import describe_defaults
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters.ranges import is_axis
from separatrix.exact.engines import ENGINES, Sampling, engine_named
from separatrix.exact.engines.sampling import enough_draws
from separatrix.exact.verdicts.verdict import parse_delta
from separatrix.mechanisms import Mechanism
from separatrix.sweeps.code import code_version
from separatrix.sweeps.plan_points import PlanPoints, make_points, read_values
from separatrix.sweeps.plan_table import (
    ALL,
    Mistakes,
    PlanTable,
    SeedsFrom,
    as_validator,
    read_choices,
    read_names,
    require_table,
)
from separatrix.sweeps.verdict_cells import DrawSettings, VerdictCell


# `Sampling` checks the ranges of its fields.
def _read_draws(value: Any) -> int:
    return Sampling(draws=parse_integer(value, "draws")).draws


def _read_confidence(value: Any) -> float:
    return Sampling(confidence=float(parse_exact(value, "confidence"))).confidence


def _read_dtype(name: str, info: ValidationInfo) -> str:
    sampling = Sampling(dtype=name)
    if "engine" in info.data:
        ENGINES[info.data["engine"]].refuse_unused(sampling)
    return name


def _read_constructions(value: Any) -> tuple[type[Construction], ...] | str:
    hint = "no construction is named; write for example construction = 'spike'"
    return ALL if value == ALL else read_names(value, construction_named, hint)


def _read_points(value: Any, info: ValidationInfo) -> tuple[PlanPoints, ...]:
    """One grid for each construction and each choice of words."""
    kinds, mistakes, table = info.data.get("construction", ()), Mistakes(), require_table(value)
    if kinds == ALL:
        if table:
            reason = "'all' takes every construction at its reference point"
            mistakes.add(f"{reason}; leave out the parameters, or name one")
        examples = [(kind, {**kind.example, **changes}) for kind in CONSTRUCTIONS.values() for changes in kind.variants]
        grids = [
            points
            for kind, example in examples
            for points in make_points(kind, {name: read_values(kind.schema, name, x) for name, x in example.items()})
        ]
    else:
        grids = [points for kind in kinds for points in _read_points_of(kind, table, mistakes)]
    mistakes.raise_all()
    return tuple(grids)


def _read_points_of(
    kind: type[Construction], parameters: Mapping[str, Any], mistakes: Mistakes
) -> Iterator[PlanPoints]:
    values = read_choices(kind.schema, parameters, mistakes)
    if values is None:
        return
    with mistakes.at():
        for points in make_points(kind, values, is_axis(parameters.get("n"))):
            for names, message in points.find_violations():
                defaults = {name: x for name, x in points.reference_defaults.items() if name in names}
                explanation = f"{message}; {describe_defaults(defaults)}" if defaults else message
                mistakes.add(explanation, *[name for name in names if name in parameters][:1])
            yield points


class VerdictTable(PlanTable):
    """A `[[sweep]]` table, every cell of which can be computed."""

    construction: Annotated[Any, PlainValidator(_read_constructions)] = Field(default=[], validate_default=True)
    engine: Annotated[str, AfterValidator(as_validator(lambda name: engine_named(name).name))] = "auto"
    delta: Annotated[Fraction, PlainValidator(as_validator(parse_delta))] = Fraction(1, 100)
    draws: Annotated[int | None, PlainValidator(as_validator(_read_draws))] = None
    confidence: Annotated[float, PlainValidator(as_validator(_read_confidence))] = 0.95
    dtype: Annotated[str, AfterValidator(as_validator(_read_dtype))] = "float64"
    until_decided: bool = False
    parameters: Annotated[tuple[PlanPoints, ...], PlainValidator(_read_points)] = Field(
        default={}, validate_default=True
    )
    """The points, by construction and choice of words."""

    threads: ClassVar[int] = VerdictCell.threads

    @cached_property
    def codes(self) -> dict[tuple[str, str], str]:
        """The version of the code, by construction and mechanism."""
        kinds = dict.fromkeys(points.kind for points in self.parameters)
        return {
            (kind.name, mechanism.spelled): code_version(kind, mechanism)
            for kind, mechanism in product(kinds, self.mechanisms)
        }

    @property
    def versions(self) -> set[str]:
        """The versions of the code that computes the cells."""
        return set(self.codes.values())

    @property
    def summary(self) -> tuple[str, str, str]:
        """The constructions, the mechanisms and the engine."""
        constructions = ", ".join(dict.fromkeys(points.kind.name for points in self.parameters))
        return constructions, ", ".join(mechanism.spelled for mechanism in self.mechanisms), self.engine

    @property
    def reference_defaults(self) -> dict[str, dict[str, str]]:
        """By construction, the parameters that the table leaves out, at its reference point."""
        return {
            points.kind.name: {name: str(value) for name, value in points.reference_defaults.items()}
            for points in self.parameters
            if points.reference_defaults
        }

    @property
    def count(self) -> int:
        """The number of cells."""
        return sum(points.grid.size for points in self.parameters) * len(self.mechanisms) * len(next(self._seeds()))

    def _seeds(self) -> Iterator[Sequence[int]]:
        """The seeds of each point in turn."""
        seeds = self.seeds if ENGINES[self.engine].draws else (0,)
        return zip(count(seeds)) if isinstance(seeds, SeedsFrom) else repeat(seeds)

    def cells(self) -> Iterator[VerdictCell]:
        """Make the cells one by one."""
        delta, seeds = format_exact(self.delta), self._seeds()
        for points, mechanism in product(self.parameters, self.mechanisms):
            names = points.kind.name, mechanism.spelled
            draws = self._choose_draws(points, mechanism)
            for point, point_seeds in zip(points, seeds, strict=False):
                for seed in point_seeds:
                    settings = None
                    if ENGINES[self.engine].draws:
                        settings = DrawSettings(draws, seed, self.confidence, self.dtype, self.until_decided)
                    yield VerdictCell(*names, point, self.engine, delta, settings, self.codes[names])

    def _choose_draws(self, points: PlanPoints, mechanism: Mechanism) -> int:
        if self.draws is not None:
            return self.draws
        return enough_draws(points.first, mechanism) if self.until_decided else Sampling().draws
