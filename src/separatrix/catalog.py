"""What `list` shows of mechanisms, constructions, claims, tasks and engines, a row for each."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

if TYPE_CHECKING:
    from separatrix.core.parameters import Parameters
    from separatrix.training.tasks import Task

Row = dict[str, Any]


def mechanisms() -> list[Row]:
    """Every mechanism with its formula, parameters and source."""
    from separatrix.mechanisms import MECHANISMS
    from separatrix.mechanisms.load import installed

    rows = [
        {
            "name": each.name,
            "family": each.family,
            "formula": each.formula,
            "parameters": _names(each.schema),
            "source": each.source,
        }
        for each in MECHANISMS.values()
    ]
    rows += [
        {
            "name": name,
            "family": "of another package",
            "formula": "as programmed",
            "parameters": ["as its package says"],
            "source": str(plugin),
        }
        for name, plugin in installed().items()
    ]
    return rows


def more_of_mechanism(name: str) -> Row:
    """What is said of one mechanism alone: how it works, its parameters, and what to do with it."""
    from separatrix.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        return {}
    kind = MECHANISMS[name]
    needed = ",".join(f"{each}={value}" for each, value in kind.example.items())
    spelled = f"{name}:{needed}" if needed else name
    return {
        "about": _paragraph(kind),
        "defaults": _defaults(kind.schema),
        "extras": [f"{extra.name}" for extra in kind.extras],
        "causal": kind.causality.value,
        "try": [f"separatrix verdict spike {spelled}", f"separatrix assess {spelled}"],
    }


def constructions() -> list[Row]:
    """Every construction with its parameters, its reference point and description."""
    from separatrix.constructions import CONSTRUCTIONS

    return [
        {
            "name": each.name,
            "title": each.title,
            "parameters": _names(each.schema),
            "choices": _choices(each.schema),
            "reference": {name: str(value) for name, value in each.example.items()},
            "provenance": each.provenance,
            "description": each.description,
        }
        for each in CONSTRUCTIONS.values()
    ]


def more_of_construction(name: str) -> Row:
    """What is said of one construction alone: its defaults, and what to do with it."""
    from separatrix.constructions import CONSTRUCTIONS

    return {
        "defaults": _defaults(CONSTRUCTIONS[name].schema),
        "try": [f"separatrix verdict {name} softmax,linear", f"separatrix readers {name} linear"],
    }


def claims() -> list[Row]:
    """Every claim of the ledger, without running it."""
    from separatrix.claims import CLAIMS

    return [
        {
            "name": each.name,
            "provenance": each.provenance,
            "place": each.place,
            "statement": each.statement,
        }
        for each in CLAIMS
    ]


def more_of_claim(name: str) -> Row:
    """What to do with one claim."""
    return {"try": [f"separatrix claim {name}"]}


def engines() -> list[Row]:
    """Every engine, and what can be expected of it."""
    from separatrix.exact.engines import ENGINES

    return [
        {"name": each.name, "title": each.title, "draws": each.draws, "proves": each.proves}
        for each in ENGINES.values()
    ]


def tasks(as_json: bool, name: str | None = None) -> list[Row]:
    """Tasks at their default parameters, with the ceiling and the floor on their samples to test with.

    Only the task called `name` is looked at, where one is named: samples take their time.
    """
    from separatrix.training.tasks import REAL_TASKS, TASKS, Split

    rows = []
    for each in TASKS.values():
        if name not in (None, each.name):
            continue
        task, setting = each.read(), each.default_setting()
        samples = task.samples(setting.tests, Split.TEST)
        ceiling, floor = task.ceiling(samples), task.floor(samples)
        known: tuple[object, object] = (ceiling.score, floor.score)
        if not as_json:
            known = f"{ceiling.score:.4f}: {ceiling.basis}", f"{floor.score:.4f}: {floor.basis}"
        rows.append(_task(each, *known))
    for real in REAL_TASKS.values():  # whose data may not be there, and whose floors take their time
        if name in (None, real.name):
            command = f"separatrix data floors {real.data}"
            unknown = (None, None) if as_json else ("none is known", f"measured by {command}")
            rows.append(_task(real, *unknown))
    return rows


def more_of_task(name: str) -> Row:
    """What is said of one task alone: its defaults, and what to do with it."""
    from separatrix.training.tasks import REAL_TASKS, TASKS

    return {
        "defaults": _defaults({**TASKS, **REAL_TASKS}[name].schema),
        "try": [f"separatrix learn {name} softmax,linear"],
    }


def _task(kind: type[Task], ceiling: object, floor: object) -> Row:
    from separatrix.training.learning.witnesses import witnessed_mechanisms

    return {
        "name": kind.name,
        "title": kind.title,
        "score": kind.metric.value,
        "ceiling": ceiling,
        "floor": floor,
        "mechanisms_with_witness": witnessed_mechanisms(kind),
        "parameters": _names(kind.schema),
        "provenance": kind.provenance,
        "description": kind.description,
    }


def _names(schema: type[Parameters]) -> list[str]:
    return [name if field.is_required() else f"[{name}]" for name, field in schema.model_fields.items()]


def _choices(schema: type[Parameters]) -> dict[str, str]:
    """The words that parameters take, where they take words, with commas between them."""
    annotated = {name: field.annotation for name, field in schema.model_fields.items()}
    return {name: ",".join(get_args(kind)) for name, kind in annotated.items() if get_origin(kind) is Literal}


def _defaults(schema: type[Parameters]) -> dict[str, str]:
    """The value of every parameter that need not be given."""
    from separatrix.core.parameters.model import is_absent, printed

    known = {name: field.default for name, field in schema.model_fields.items() if not field.is_required()}
    return {name: str(printed(value)) for name, value in known.items() if not is_absent(value)}


def _paragraph(kind: type) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())


def published() -> list[Row]:
    """Every published number that `learn --published` measures, without measuring it."""
    from separatrix.analysis.evidence.published import PUBLISHED, describe_measurement

    rows = list[Row]()
    for each in PUBLISHED:
        rows.append(
            {
                "name": each.name,
                "states": each.states,
                "published": each.value,
                "source": each.source,
                "measured_by": describe_measurement(each),
                "differs_in": each.other or each.differs or None,
                "cpu_seconds": each.seconds,
            }
        )
    return rows
