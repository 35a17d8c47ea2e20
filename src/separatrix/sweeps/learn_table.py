"""A table of training runs in a plan: tasks × parameters × settings × mechanisms × rates × starts × seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator

from separatrix.core.parameters import Parameters, UsageError
from separatrix.mechanisms import Mechanism
from separatrix.sweeps.code import training_code
from separatrix.sweeps.plan_file import Complaints
from separatrix.sweeps.plan_points import read_values, written_values
from separatrix.sweeps.table_keys import (
    SeedsFrom,
    TableKeys,
    read_mechanisms,
    told,
    written_mechanisms,
    written_product,
    written_seeds,
)
from separatrix.sweeps.training_runs import SCRATCH, TrainingRun, positive, spelled_start, training_run
from separatrix.training.tasks import TASKS, Setting, Task, task_named

LEARN_PLAN = "separatrix learn --plan FILE"
"""What makes the runs of tables with pilots."""
OWN_SEEDS = (
    "seeds = '{}:' would give each run a seed of its own, and then runs cannot be compared in pairs; give a "
    "list, or first:last"
)

MOST_PILOTS = 1000


def _rates(given: Any) -> tuple[Fraction, ...]:
    listed = given if isinstance(given, list) else str(given).split(",")
    plain = [str(each) if isinstance(each, Decimal) else each for each in listed]
    if not plain:
        raise UsageError("rates = [] has no learning rate; give at least one, or leave it out")
    return tuple(dict.fromkeys(map(positive, plain)))


def _starts(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(each, str) for each in listed):
        raise UsageError(f"start = {given!r} is not 'scratch' or 'witness:1', or a list of such")
    return tuple(dict.fromkeys(map(spelled_start, listed)))


def _pilots(given: Any) -> int:
    if type(given) is not int or not 0 <= given <= MOST_PILOTS:
        raise UsageError(f"pilots = {given!r} must be a whole number from 0 to {MOST_PILOTS}")
    return given


def device_named(name: str) -> str:
    """A device as torch spells it; whether it is there, only a worker knows.

    >>> device_named("cuda:1")
    'cuda:1'
    """
    kind, colon, number = name.partition(":")
    if not kind.isalpha() or (colon and not number.isdigit()):
        raise UsageError(f"device={name} is no device; write for example cpu, cuda or cuda:1")
    return name


class LearnKeys(TableKeys):
    """What a table of training runs may say."""

    task: str | list[str] = Field(default=[])
    setting: dict[str, Any] = Field(default={})
    rates: Annotated[tuple[Fraction, ...], PlainValidator(told(_rates))] = ()
    start: Annotated[tuple[str, ...], PlainValidator(told(_starts))] = (SCRATCH,)
    test: bool = False
    pilots: Annotated[int, PlainValidator(told(_pilots))] = 0
    device: Annotated[str, AfterValidator(told(device_named))] = "cpu"


@dataclass(frozen=True)
class LearnTable:
    """A table that was read: every run of it can be made."""

    name: str
    keys: LearnKeys
    points: tuple[tuple[Task, Setting], ...]
    mechanisms: tuple[Mechanism, ...]
    threads = TrainingRun.threads

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of every point."""
        return () if isinstance(self.keys.seeds, SeedsFrom) else self.keys.seeds

    def rates(self, setting: Setting) -> tuple[Fraction, ...]:
        """The learning rates of a point."""
        return self.keys.rates or setting.grid

    @property
    def stages(self) -> bool:
        """Whether pilots choose the rates: its runs are not known before those have been made."""
        return self.keys.pilots > 0

    @property
    def count(self) -> int:
        """The number of runs."""
        grids = [len(self.rates(setting)) for _, setting in self.points]
        if self.stages:
            pilots = sum(grid * self.keys.pilots for grid in grids if grid > 1)
            return (pilots + len(self.seeds) * len(grids)) * len(self.mechanisms)
        return sum(grids) * len(self.mechanisms) * len(self.keys.start) * len(self.seeds)

    @property
    def versions(self) -> set[str]:
        """Of the code that makes its runs."""
        starts = {start != SCRATCH for start in self.keys.start}
        kinds = {type(task) for task, _ in self.points}
        return {training_code(*each) for each in product(kinds, self.mechanisms, starts)}

    @property
    def taken(self) -> dict[str, dict[str, str]]:
        """Nothing: a task has values of its own for what is not given."""
        return {}

    @property
    def summary(self) -> tuple[str, str, str]:
        """What is asked of whom, and how."""
        about = ", ".join(dict.fromkeys(task.name for task, _ in self.points))
        return about, ", ".join(mechanism.spelled for mechanism in self.mechanisms), "training"

    def __iter__(self) -> Iterator[TrainingRun]:
        if self.stages:
            raise UsageError(
                f"the rates of {self.name} are chosen by pilots; `learn` does that: {LEARN_PLAN}"
            )
        for (task, setting), mechanism in product(self.points, self.mechanisms):
            for rate, start, seed in product(self.rates(setting), self.keys.start, self.seeds):
                yield training_run(
                    *(task, mechanism, setting, rate, seed),
                    start=start,
                    pilot=not self.keys.test,
                    device=self.keys.device,
                )


def read_learn_table(
    keys: LearnKeys, name: str, complaints: Complaints, allow: Collection[str]
) -> LearnTable:
    """The runs that a table asks for; what is wrong with those it names goes to `complaints`."""
    if isinstance(keys.seeds, SeedsFrom):
        complaints.add(OWN_SEEDS.format(int(keys.seeds)), "seeds")
    if keys.pilots and (keys.test or keys.start != (SCRATCH,)):
        complaints.add("runs whose rates pilots choose are tested, and begin from scratch", "pilots")
    mechanisms = {
        read_mechanism.spelled: read_mechanism for read_mechanism in read_mechanisms(keys, complaints, allow)
    }
    return LearnTable(name, keys, tuple(_points(keys, complaints)), tuple(mechanisms.values()))


def written_runs(table: Mapping[str, Any]) -> int:
    """How many runs are written, counted before any is made.

    >>> written_runs({"mechanisms": ["softmax", "elu"], "parameters": {"n": [64, 256]}, "seeds": "0:5"})
    24
    """
    products = (written_product(table.get(name)) for name in ("parameters", "setting"))
    listed = (written_values(table.get(name)) for name in ("task", "rates", "start"))
    return math.prod((*products, *listed, written_mechanisms(table), written_seeds(table.get("seeds"))))


def _points(keys: LearnKeys, complaints: Complaints) -> Iterator[tuple[Task, Setting]]:
    """Every task at every choice of its parameters, with every choice of its setting."""
    if not keys.task:
        known = ", ".join(TASKS)
        complaints.add(f"no task is named; write for example task = 'needle' (there are: {known})", "task")
    for name in [keys.task] if isinstance(keys.task, str) else keys.task:
        with complaints.at("task"):
            kind = task_named(name)
            tasks = _choices(kind.schema, "parameters", keys.parameters, complaints)
            settings = _choices(Setting, "setting", keys.setting, complaints)
            for values, chosen in product(tasks, settings):
                with complaints.at("parameters"):
                    task = kind.read(values)
                    with complaints.at("setting"):
                        yield task, kind.default_setting(**chosen)


def _choices(
    schema: type[Parameters], key: str, given: Mapping[str, Any], complaints: Complaints
) -> list[dict[str, Any]]:
    """The product of what is written, none where a part of it is wrong."""
    values, before = dict[str, tuple[Any, ...]](), len(complaints.found)
    for name, written in given.items():
        with complaints.at(key, name):
            values[name] = read_values(schema, name, written)
    if len(complaints.found) > before:
        return []
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
