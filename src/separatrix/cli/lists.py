"""`list`: the names that other commands take, or the details of one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from separatrix import catalog
from separatrix.cli import completion
from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.terminal import console, escape_all, new_table, plain, print_json, warn_of
from separatrix.core.secrets import Secret

KINDS = ("mechanisms", "constructions", "claims", "tasks", "engines", "published", "plans", "sweeps")
CATALOGS: dict[str, tuple[Callable[[], list[catalog.Row]], Callable[[str], catalog.Row]]] = {
    "mechanisms": (catalog.list_mechanisms, catalog.describe_mechanism),
    "constructions": (catalog.list_constructions, catalog.describe_construction),
    "claims": (catalog.list_claims, catalog.describe_claim),
    "engines": (catalog.list_engines, lambda name: {}),
    "published": (catalog.list_published, lambda name: {}),
}
"""For each kind, a function that returns all rows, and one that returns the details of a single name."""


def list_(
    kind: Annotated[str, Argument(help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}.", autocompletion=completion.lists)],
    name: Annotated[
        str | None, Argument(help="Show only this one, in detail.", autocompletion=completion.list_entries)
    ] = None,
    lattice: Annotated[bool, Option("--lattice", help="With mechanisms: which is a special case of which.")] = False,
    store: StoreUrl = HERE,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, Option(help="With one construction: write its picture to this .svg, .png or .pdf file.")
    ] = None,
) -> None:
    """List the names that other commands take, or show one of them in detail.

    \b
    Examples:
      separatrix list mechanisms
      separatrix list constructions spike
      separatrix list constructions spike --out spike.svg
    """
    from separatrix.core.parameters import UsageError, require_known

    if kind not in KINDS and name is None and (home := _find_kind(kind)):
        raise UsageError(f"{kind} is one of the {home}; write: separatrix list {home} {kind}")
    require_known("list of", kind, KINDS)
    if lattice and (kind != "mechanisms" or name is not None):
        raise UsageError("the lattice is of all mechanisms; write: separatrix list mechanisms --lattice")
    if out is not None and (kind != "constructions" or name is None):
        example = "separatrix list constructions spike --out spike.svg"
        raise UsageError(f"only one construction has a picture; write: {example}")
    if lattice:
        _print_lattice(as_json)
    elif kind == "plans":
        _print_plans(name, as_json)
    elif kind == "sweeps":
        if name is not None:
            command = f"separatrix results --sweep {name}"
            raise UsageError(f"sweeps are listed all at once; for the results of one: {command}")
        _print_sweeps(store, as_json)
    elif kind == "tasks":
        if name is not None:
            from separatrix.training.tasks import REAL_TASKS, TASKS

            require_known("task", name, [*TASKS, *REAL_TASKS])
        rows = catalog.list_tasks(as_json, name)
        _print_rows(rows if name is None else [{**rows[0], **catalog.describe_task(name)}], name, as_json)
    else:
        # Rows of these kinds take milliseconds; bounds of tasks and stores of sweeps take seconds.
        list_rows, describe = CATALOGS[kind]
        rows = list_rows()
        if name is not None:
            name = name.partition(":")[0]
            rows_by_name = {row["name"]: row for row in rows}
            require_known(kind.removesuffix("s"), name, rows_by_name)
            rows = [{**rows_by_name[name], **describe(name)}]
        if out is None:
            _print_rows(rows, name, as_json)
        if kind == "constructions" and name is not None and (out is not None or not as_json):
            _illustrate(name, out)


def _illustrate(name: str, out: Path | None) -> None:
    """Print the picture of a construction in characters, or write it to a file."""
    if out is None:
        from separatrix.analysis.cards.illustration import illustrate
        from separatrix.cli import illustrated

        illustrated.show(illustrate(name))
    else:
        from separatrix.core.files.writing import require_writable, write_whole
        from separatrix.pages.paper import PICTURES

        require_writable(out, PICTURES)
        # Imported after the check, since matplotlib takes a second to load.
        from separatrix.pages.illustration import render_illustration

        write_whole(out, render_illustration(name, out.suffix[1:]))


def _find_kind(name: str) -> str:
    """Return the kind of object that has this name, or "". Tasks, which are slow to list, are left out."""
    name = name.partition(":")[0]
    for kind, (list_rows, _) in CATALOGS.items():
        if any(row["name"] == name for row in list_rows()):
            return kind
    return ""


def _print_rows(rows: list[catalog.Row], name: str | None, as_json: bool) -> None:
    """Print every row; with a `name` there is one, and its JSON is an object instead of a list."""
    if as_json:
        print_json(rows if name is None else rows[0])
        return
    out = console()
    for row in rows:
        out.print(row["name"], style="bold")
        for label, value in row.items():
            if label == "try":
                for command in value:
                    out.print(f"  try: {command}", markup=False)
            elif label != "name":
                out.print(f"  {label.replace('_', ' ')}: {_text(value)}", soft_wrap=False, markup=False)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{name}={item}" for name, item in value.items()]
    return (" ".join(value) or "none") if isinstance(value, list) else str(value)


def _print_lattice(as_json: bool) -> None:
    """Print which mechanism equals which other one, and at which parameters; every line is a test."""
    from separatrix.contract.lattice import list_special_cases

    cases, columns = list_special_cases(), ("special", "general", "causal", "inputs", "why")
    rows = (escape_all(row[column] for column in columns) for row in cases)
    if as_json:
        print_json(cases)
    else:
        console().print(new_table("this", "is", "causal", "tokens", "why", rows=rows, gap=1))


def _print_plans(name: str | None, as_json: bool) -> None:
    """Print every plan that comes with separatrix, or the text of one."""
    import tomllib

    from separatrix.sweeps.plan import load_plan
    from separatrix.sweeps.sweep import shipped_plans

    files = shipped_plans()
    if name is not None:
        from separatrix.core.parameters import require_known

        require_known("plan", name, files)
        files = {name: files[name]}
        if not as_json:
            console().print(files[name].read_text().rstrip(), markup=False, soft_wrap=True)
            return
    rows = []
    for plan, file in files.items():
        # Counting cells imports what plans name, which the text does without.
        cells = {"cells": load_plan(file).count} if as_json else {}
        rows.append({"name": plan, "description": tomllib.loads(file.read_text())["description"], **cells})
    _print_rows(rows, name, as_json)


def _print_sweeps(store: Secret, as_json: bool) -> None:
    """Print every sweep of a store."""
    from separatrix.sweeps.store import open_store
    from separatrix.sweeps.store.sweep_list import list_sweeps

    sweeps, damage = list_sweeps(open_store(store))
    if as_json:
        columns = ("id", "name", "started", "cells")
        print_json([{column: getattr(sweep, column) for column in columns} for sweep in sweeps])
    elif not sweeps:
        console().print("no sweep is intact" if damage else "no sweep is stored")
    else:
        lines = ((str(x.id), plain(x.name), plain(x.started), f"{x.cells:,}") for x in sweeps)
        console().print(new_table("number", "name", "begun", "cells stored", rows=lines))
    warn_of(damage)
