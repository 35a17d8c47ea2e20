"""Tables of training runs in a plan: tasks × parameters × settings × mechanisms × rates × starts × seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo

from separatrix.core.parameters import Parameters, UsageError
from separatrix.sweeps.code import training_code
from separatrix.sweeps.plan_table import (
    Mistakes,
    PlanTable,
    SeedsFrom,
    as_validator,
    read_choices,
    read_names,
    read_seeds,
    require_table,
)
from separatrix.sweeps.training_runs import SCRATCH, TrainingRun, normalize_start, parse_rate, training_run
from separatrix.training.tasks import TASKS, Setting, Task, task_named

LEARN_PLAN = "separatrix learn --plan FILE"
"""The command that makes the runs of tables with pilots."""
MAX_PILOTS = 1000


def _read_fixed_seeds(value: Any) -> range | tuple[int, ...]:
    seeds = read_seeds(value)
    if isinstance(seeds, SeedsFrom):
        raise UsageError(
            f"seeds = '{int(seeds)}:' would give each run a seed of its own, and then runs cannot be "
            "compared in pairs; give a list, or first:last"
        )
    return seeds


def _read_rates(value: Any) -> tuple[Fraction, ...]:
    items = value if isinstance(value, list) else str(value).split(",")
    if not items:
        raise UsageError("rates = [] has no learning rate; give at least one, or leave it out")
    plain = [str(item) if isinstance(item, Decimal) else item for item in items]
    return tuple(dict.fromkeys(map(parse_rate, plain)))


def _read_starts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, str) for item in items):
        raise UsageError(f"start = {value!r} is not 'scratch' or 'witness:1', or a list of these")
    return tuple(dict.fromkeys(map(normalize_start, items)))


def _read_pilots(value: Any, info: ValidationInfo) -> int:
    if type(value) is not int or not 0 <= value <= MAX_PILOTS:
        raise UsageError(f"pilots = {value!r} must be a whole number from 0 to {MAX_PILOTS}")
    if value and (info.data.get("test") or info.data.get("start", (SCRATCH,)) != (SCRATCH,)):
        raise UsageError("runs whose rates pilots choose are tested, and begin from scratch")
    return value


def check_device(name: str) -> str:
    """Return the name of a device of torch; only a worker knows whether it exists.

    >>> check_device("cuda:1")
    'cuda:1'
    """
    kind, colon, number = name.partition(":")
    if not kind.isalpha() or (colon and not number.isdigit()):
        raise UsageError(f"device={name} is not a device; write for example cpu, cuda or cuda:1")
    return name


def _read_tasks(value: Any) -> tuple[type[Task], ...]:
    hint = f"no task is named; write for example task = 'needle' (there are: {', '.join(TASKS)})"
    return read_names(value, task_named, hint)


def _read_parameters(value: Any, info: ValidationInfo) -> tuple[Task, ...]:
    mistakes, tasks = Mistakes(), list[Task]()
    for kind in info.data.get("task", ()):
        for values in _list_choices(kind.schema, require_table(value), mistakes):
            with mistakes.at():
                tasks.append(kind.read(values))
    mistakes.raise_all()
    return tuple(tasks)


def _read_settings(value: Any, info: ValidationInfo) -> tuple[tuple[Task, Setting], ...]:
    mistakes, points = Mistakes(), list[tuple[Task, Setting]]()
    choices = _list_choices(Setting, require_table(value), mistakes)
    for task, values in product(info.data.get("parameters", ()), choices):
        with mistakes.at():
            points.append((task, task.default_setting(**values)))
    mistakes.raise_all()
    return tuple(points)


def _list_choices(schema: type[Parameters], entries: Mapping[str, Any], mistakes: Mistakes) -> list[dict[str, Any]]:
    """The product of the values of some parameters; empty if one of them is wrong."""
    values = read_choices(schema, entries, mistakes)
    return [] if values is None else [dict(zip(values, x, strict=True)) for x in product(*values.values())]


class LearnTable(PlanTable):
    """A `[[learn]]` table, every run of which can be made."""

    seeds: Annotated[range | tuple[int, ...], PlainValidator(as_validator(_read_fixed_seeds))] = (0,)
    task: Annotated[Any, PlainValidator(_read_tasks)] = Field(default=[], validate_default=True)
    parameters: Annotated[tuple[Task, ...], PlainValidator(_read_parameters)] = Field(default={}, validate_default=True)
    """The tasks at their parameters."""
    setting: Annotated[tuple[tuple[Task, Setting], ...], PlainValidator(_read_settings)] = Field(
        default={}, validate_default=True
    )
    """The tasks at their parameters, with each choice of settings."""
    rates: Annotated[tuple[Fraction, ...], PlainValidator(as_validator(_read_rates))] = ()
    start: Annotated[tuple[str, ...], PlainValidator(as_validator(_read_starts))] = (SCRATCH,)
    test: bool = False
    pilots: Annotated[int, PlainValidator(as_validator(_read_pilots))] = 0
    device: Annotated[str, AfterValidator(as_validator(check_device))] = "cpu"

    threads: ClassVar[int] = TrainingRun.threads
    reference_defaults: ClassVar[dict[str, dict[str, str]]] = {}
    """Empty: a task has defaults of its own."""

    def list_rates(self, setting: Setting) -> tuple[Fraction, ...]:
        """Return the learning rates of a point."""
        return self.rates or setting.grid

    @property
    def has_stages(self) -> bool:
        """Whether pilots choose the rates, so that the runs are not known before the pilots are done."""
        return self.pilots > 0

    @property
    def count(self) -> int:
        """The number of runs."""
        grids = [len(self.list_rates(setting)) for _, setting in self.setting]
        if self.has_stages:
            pilots = sum(grid * self.pilots for grid in grids if grid > 1)
            return (pilots + len(self.seeds) * len(grids)) * len(self.mechanisms)
        return sum(grids) * len(self.mechanisms) * len(self.start) * len(self.seeds)

    @property
    def versions(self) -> set[str]:
        """The versions of the code that makes the runs."""
        starts = {start != SCRATCH for start in self.start}
        kinds = {type(task) for task, _ in self.setting}
        return {training_code(*choice) for choice in product(kinds, self.mechanisms, starts)}

    @property
    def summary(self) -> tuple[str, str, str]:
        """The tasks, the mechanisms and the kind of work."""
        tasks = ", ".join(dict.fromkeys(task.name for task, _ in self.setting))
        return tasks, ", ".join(mechanism.spelled for mechanism in self.mechanisms), "training"

    def cells(self) -> Iterator[TrainingRun]:
        """Make the runs one by one."""
        if self.has_stages:
            raise UsageError(f"pilots choose the rates of {self.name}; use {LEARN_PLAN}")
        for (task, setting), mechanism in product(self.setting, self.mechanisms):
            for rate, start, seed in product(self.list_rates(setting), self.start, self.seeds):
                yield training_run(
                    *(task, mechanism, setting, rate, seed), start=start, pilot=not self.test, device=self.device
                )
