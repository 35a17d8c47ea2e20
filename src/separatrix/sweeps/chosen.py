"""The mechanisms and the parameter points that a table of a plan chooses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Any

from separatrix.constructions import CONSTRUCTIONS, Construction, construction_named
from separatrix.mechanisms import MECHANISMS, Mechanism, examples
from separatrix.mechanisms.load import mechanism_from
from separatrix.parameters import UsageError
from separatrix.sweeps.complaints import Complaints
from separatrix.sweeps.keys import Keys, Where
from separatrix.sweeps.lines import Path
from separatrix.sweeps.points import Points, points_of
from separatrix.sweeps.values import Values, read_values, spelled

ALL = "all"


def chosen_mechanisms(
    given: str | list[str | dict[str, Any]], path: Path, complaints: Complaints, allow: Collection[str]
) -> Iterator[Mechanism]:
    """Every mechanism named, with each choice of its own parameters."""
    if given == ALL:
        yield from examples()
        return
    if not given:
        complaints.add(path, "no mechanism is named; write for example mechanisms = ['softmax', 'linear']")
    seen: set[str] = set()
    for entry in [given] if isinstance(given, str) else given:
        with complaints.at(path):
            for name in [entry] if isinstance(entry, str) else _spelled(entry):
                mechanism = _mechanism(name, allow)
                if mechanism.spelled not in seen:
                    yield mechanism
                seen.add(mechanism.spelled)


def _spelled(entry: Mapping[str, Any]) -> list[str]:
    """`{ name = "power", beta = [2, 4] }` as `power:beta=2` and `power:beta=4`."""
    name, own = entry.get("name"), {key: value for key, value in entry.items() if key != "name"}
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UsageError(
            f"{dict(entry)} names no built-in mechanism; write for example {{name = 'power', beta = 4}}"
        )
    values = [read_values(MECHANISMS[name].schema, key, value) for key, value in own.items()]
    chosen = product(*([f"{each.name}={spelled(value)}" for value in each.values] for each in values))
    return [f"{name}:{','.join(words)}" if words else name for words in chosen]


def _mechanism(name: str, allow: Collection[str]) -> Mechanism:
    module, colon, rest = name.partition(":")
    if colon and module not in MECHANISMS and "=" not in rest and name not in allow:
        raise UsageError(
            f"{name} would run code that is not part of separatrix; if it is yours, say so: --allow {name}"
        )
    return mechanism_from(name)


def chosen_points(keys: Keys, path: Where, complaints: Complaints) -> Iterator[Points]:
    """One grid for each construction and each choice of what is not a number."""
    if keys.construction == ALL:
        yield from _reference_points(keys, path, complaints)
        return
    names = [keys.construction] if isinstance(keys.construction, str) else keys.construction
    if not names:
        complaints.add(
            path("construction"), "no construction is named; write for example construction = 'spike'"
        )
    for name in names:
        with complaints.at(path("construction")):
            yield from _grid(construction_named(name), keys.parameters, path, complaints)


def _reference_points(keys: Keys, path: Where, complaints: Complaints) -> Iterator[Points]:
    if keys.parameters:
        complaints.add(
            path("parameters"),
            "'all' takes every construction at its reference point; leave out the parameters, or name one",
        )
    for kind in CONSTRUCTIONS.values():
        for changes in kind.variants:
            given = {**kind.example, **changes}.items()
            yield from points_of(kind, [read_values(kind.schema, *each) for each in given])


def _grid(
    kind: type[Construction], parameters: Mapping[str, Any], path: Where, complaints: Complaints
) -> Iterator[Points]:
    before, values = len(complaints.found), list[Values]()
    for name, given in parameters.items():
        for each in given if isinstance(given, list) else []:
            with complaints.at(path("parameters", name)):
                read_values(kind.schema, name, each)
        with complaints.at(path("parameters", name)):
            values.append(read_values(kind.schema, name, given))
    fields = kind.schema.model_fields.items()
    missing = [name for name, field in fields if field.is_required() and name not in parameters]
    if missing:
        known = " ".join(f"{name}=…" for name in kind.schema.model_fields)
        complaints.add(
            path("parameters"), f"{kind.name} needs {', '.join(missing)} as well; its parameters are: {known}"
        )
    if len(complaints.found) > before:
        return

    def complain(names: tuple[str, ...], message: str) -> None:
        places = [path("parameters", name) for name in names if name in parameters]
        complaints.add(places[0] if places else path("parameters"), message)

    with complaints.at(path("parameters")):
        yield from points_of(kind, values, complain)
