"""The rows of `separatrix list`: mechanisms, constructions, claims, engines, tasks, published numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

if TYPE_CHECKING:
    from separatrix.core.parameters import Parameters
    from separatrix.training.tasks import Task

Row = dict[str, Any]


def list_mechanisms() -> list[Row]:
    """Return every mechanism with its formula, parameters and source."""
    from separatrix.mechanisms import MECHANISMS
    from separatrix.mechanisms.load import describe_plugin, installed

    rows = [
        {
            "name": kind.name,
            "family": kind.family,
            "formula": kind.formula,
            "parameters": _parameter_names(kind.schema),
            "source": kind.source,
        }
        for kind in MECHANISMS.values()
    ]
    rows += [
        {
            "name": name,
            "family": "of another package",
            "formula": "as programmed",
            "parameters": ["see its package"],
            "source": describe_plugin(plugin),
        }
        for name, plugin in installed().items()
    ]
    return rows


def describe_mechanism(name: str) -> Row:
    """Return details on one mechanism: its docstring, defaults, extra inputs, and commands to try."""
    from separatrix.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        return {}
    kind = MECHANISMS[name]
    parameters = ",".join(f"{parameter}={value}" for parameter, value in kind.example.items())
    spelling = f"{name}:{parameters}" if parameters else name
    return {
        "about": kind.title,
        "defaults": _defaults(kind.schema),
        "extras": [extra.name for extra in kind.extras],
        "causal": kind.causality.value,
        "try": [f"separatrix verdict spike {spelling}", f"separatrix assess {spelling}"],
    }


def list_constructions() -> list[Row]:
    """Return every construction with its parameters, reference point and description."""
    from separatrix.constructions import CONSTRUCTIONS

    return [
        {
            "name": kind.name,
            "title": kind.title,
            "parameters": _parameter_names(kind.schema),
            "choices": _choices(kind.schema),
            "reference": {name: str(value) for name, value in kind.example.items()},
            "provenance": kind.provenance,
            "description": kind.description,
        }
        for kind in CONSTRUCTIONS.values()
    ]


def describe_construction(name: str) -> Row:
    """Return details on one construction: its defaults, and commands to try."""
    from separatrix.constructions import CONSTRUCTIONS

    return {
        "defaults": _defaults(CONSTRUCTIONS[name].schema),
        "try": [f"separatrix verdict {name} softmax,linear", f"separatrix readers {name} linear"],
    }


def list_claims() -> list[Row]:
    """Return every claim of the ledger, without checking it."""
    from separatrix.claims import CLAIMS

    columns = ("name", "provenance", "place", "statement")
    return [{column: getattr(claim, column) for column in columns} for claim in CLAIMS]


def describe_claim(name: str) -> Row:
    """Return the command that checks one claim."""
    return {"try": [f"separatrix claim {name}"]}


def list_engines() -> list[Row]:
    """Return every engine, and whether it draws samples or proves its result."""
    from separatrix.exact.engines import ENGINES

    columns = ("name", "title", "draws", "proves")
    return [{column: getattr(engine, column) for column in columns} for engine in ENGINES.values()]


def list_tasks(as_json: bool, name: str | None = None) -> list[Row]:
    """Return all tasks, or the one called `name`, with their ceiling and floor at default parameters.

    Both are computed on the task's test samples, which takes seconds for some tasks. As text they come with
    an explanation, in JSON they are numbers.
    """
    from separatrix.training.tasks import REAL_TASKS, TASKS, Split

    rows = []
    for kind in TASKS.values():
        if name not in (None, kind.name):
            continue
        task, setting = kind.read(), kind.default_setting()
        samples = task.samples(setting.tests, Split.TEST)
        ceiling, floor = task.ceiling(samples), task.floor(samples)
        bounds: tuple[object, object] = (ceiling.score, floor.score)
        if not as_json:
            bounds = f"{ceiling.score:.4f}: {ceiling.basis}", f"{floor.score:.4f}: {floor.basis}"
        rows.append(_task_row(kind, *bounds))
    # Tasks on real data have no bounds here: the data may not be downloaded, and floors take minutes.
    for real in REAL_TASKS.values():
        if name in (None, real.name):
            command = f"separatrix data floors {real.data}"
            rows.append(_task_row(real, *((None, None) if as_json else ("unknown", f"measured by {command}"))))
    return rows


def describe_task(name: str) -> Row:
    """Return details on one task: its defaults, and a command to try."""
    from separatrix.training.tasks import REAL_TASKS, TASKS

    return {
        "defaults": _defaults({**TASKS, **REAL_TASKS}[name].schema),
        "try": [f"separatrix learn {name} softmax,linear"],
    }


def _task_row(kind: type[Task], ceiling: object, floor: object) -> Row:
    from separatrix.training.learning.witnesses import witnessed_mechanisms

    return {
        "name": kind.name,
        "title": kind.title,
        "score": kind.metric.value,
        "ceiling": ceiling,
        "floor": floor,
        "mechanisms_with_witness": witnessed_mechanisms(kind),
        "parameters": _parameter_names(kind.schema),
        "provenance": kind.provenance,
        "description": kind.description,
    }


def _parameter_names(schema: type[Parameters]) -> list[str]:
    """Return the names of the parameters, optional ones in brackets."""
    return [name if field.is_required() else f"[{name}]" for name, field in schema.model_fields.items()]


def _choices(schema: type[Parameters]) -> dict[str, str]:
    """Return the allowed words of the parameters that take words, separated by commas."""
    types = {name: field.annotation for name, field in schema.model_fields.items()}
    return {name: ",".join(get_args(kind)) for name, kind in types.items() if get_origin(kind) is Literal}


def _defaults(schema: type[Parameters]) -> dict[str, str]:
    """Return the default value of every optional parameter that has one."""
    from separatrix.core.parameters.model import format_value, is_absent

    fields = {name: field for name, field in schema.model_fields.items() if not field.is_required()}
    return {name: str(format_value(field.default)) for name, field in fields.items() if not is_absent(field.default)}


def list_published() -> list[Row]:
    """Return every published number that `learn --published` measures, without measuring it."""
    from separatrix.analysis.evidence.published import PUBLISHED, describe_measurement

    return [
        {
            "name": number.name,
            "states": number.states,
            "published": number.published,
            "source": number.source,
            "measured_by": describe_measurement(number),
            "differs_in": number.other or number.differs or None,
            "cpu_seconds": number.cpu_seconds,
        }
        for number in PUBLISHED
    ]
