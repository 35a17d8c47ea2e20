"""`list`: mechanisms, constructions, claims, tasks, plans, sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.terminal import console, escape, new_table, plain, print_json, warn_of
from separatrix.secrets import Secret

if TYPE_CHECKING:
    from separatrix.parameters import Parameters
    from separatrix.tasks import Task


def list_(
    what: Annotated[str, typer.Argument(help="mechanisms, constructions, claims, tasks, plans or sweeps")],
    lattice: Annotated[
        bool, typer.Option("--lattice", help="With mechanisms: which is a special case of which.")
    ] = False,
    store: StoreUrl = HERE,
    as_json: AsJson = False,
) -> None:
    """List mechanisms, constructions, claims, tasks, plans, sweeps."""
    from separatrix.parameters import UsageError, require_known

    lists: dict[str, Callable[[bool], None]] = {
        "mechanisms": _lattice if lattice else _mechanisms,
        "constructions": _constructions,
        "claims": _claims,
        "tasks": _tasks,
        "plans": _plans,
        "sweeps": lambda as_json: _sweeps(store, as_json),
    }
    require_known("list of", what, lists)
    if lattice and what != "mechanisms":
        raise UsageError(f"{what} have no lattice; write: separatrix list mechanisms --lattice")
    lists[what](as_json)


def _mechanisms(as_json: bool) -> None:
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
    _listing(rows, as_json)


def _lattice(as_json: bool) -> None:
    """Which mechanism, at which parameters, is another one; every line is a test."""
    from separatrix.contract.lattice import shown

    if as_json:
        print_json(shown())
        return
    table = new_table("this", "is", "causal", "tokens", "why", gap=1)
    for row in shown():
        table.add_row(*(escape(row[name]) for name in ("special", "general", "causal", "inputs", "why")))
    console().print(table)


def _constructions(as_json: bool) -> None:
    """Every construction with its parameters and description."""
    from separatrix.constructions import CONSTRUCTIONS

    rows = [
        {
            "name": each.name,
            "title": each.title,
            "parameters": _names(each.schema),
            "provenance": each.provenance,
            "description": each.description,
        }
        for each in CONSTRUCTIONS.values()
    ]
    _listing(rows, as_json)


def _claims(as_json: bool) -> None:
    """Every claim of the ledger, without running it."""
    from separatrix.claims import CLAIMS

    rows = [
        {"name": each.name, "provenance": each.provenance, "statement": each.statement} for each in CLAIMS
    ]
    _listing(rows, as_json)


def _tasks(as_json: bool) -> None:
    """Every task at its default parameters, with the ceiling and the floor on its samples to test with."""
    from separatrix.tasks import REAL_TASKS, TASKS, Split

    rows = []
    for each in TASKS.values():
        task, setting = each.read(), each.default_setting()
        samples = task.samples(setting.tests, Split.TEST)
        ceiling, floor = task.ceiling(samples), task.floor(samples, setting)
        known: tuple[object, object] = (ceiling.score, floor.score)
        if not as_json:
            known = f"{ceiling.score:.4f}: {ceiling.how}", f"{floor.score:.4f}: {floor.how}"
        rows.append(_task(each, *known))
    for real in REAL_TASKS.values():  # whose data may not be there, and whose floors take their time
        command = f"separatrix data floors {real.data}"
        rows.append(_task(real, *((None, None) if as_json else ("none is known", f"measured by {command}"))))
    _listing(rows, as_json)


def _task(kind: type[Task], ceiling: object, floor: object) -> dict[str, Any]:
    from separatrix.learning.witnesses import witnessed

    return {
        "name": kind.name,
        "title": kind.title,
        "score": kind.answers.value,
        "ceiling": ceiling,
        "floor": floor,
        "mechanisms_with_witness": witnessed(kind),
        "parameters": _names(kind.schema),
        "provenance": kind.provenance,
        "description": kind.description,
    }


def _names(schema: type[Parameters]) -> list[str]:
    return [name if field.is_required() else f"[{name}]" for name, field in schema.model_fields.items()]


def _listing(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    out = console()
    for row in rows:
        out.print(row["name"], style="bold")
        for name, value in row.items():
            if name != "name":
                text = (" ".join(value) or "none") if isinstance(value, list) else value
                out.print(f"  {name}: {text}", soft_wrap=False, markup=False)


def _plans(as_json: bool) -> None:
    """Print every plan that comes with separatrix."""
    import tomllib

    from separatrix.sweeps import load_plan, shipped_plans

    files = shipped_plans()
    about = {name: tomllib.loads(file.read_text())["description"] for name, file in files.items()}
    if as_json:
        counts = {name: load_plan(file).count for name, file in files.items()}
        print_json([{"name": name, "description": about[name], "cells": counts[name]} for name in files])
        return
    table = new_table()
    for name, description in about.items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(description))
    console().print(table)


def _sweeps(store: Secret, as_json: bool) -> None:
    """Print every sweep of a store."""
    from separatrix.store import open_store
    from separatrix.store.sweep_list import list_sweeps

    found, damage = list_sweeps(open_store(store))
    if as_json:
        names = ("id", "name", "started", "cells")
        print_json([{name: getattr(each, name) for name in names} for each in found])
    elif not found:
        console().print("no sweep is stored")
    else:
        table = new_table("number", "name", "begun", "cells stored")
        for each in found:
            table.add_row(str(each.id), plain(each.name), plain(each.started), f"{each.cells:,}")
        console().print(table)
    warn_of(damage)
