"""`list`: mechanisms, constructions, claims, tasks, engines, published numbers, plans, sweeps; or one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from separatrix import catalog
from separatrix.cli import completion
from separatrix.cli.options import HERE, AsJson, StoreUrl
from separatrix.cli.terminal import console, escape, new_table, plain, print_json, warn_of
from separatrix.core.secrets import Secret

WHAT = ("mechanisms", "constructions", "claims", "tasks", "engines", "published", "plans", "sweeps")
ROWS: dict[str, tuple[Callable[[], list[catalog.Row]], Callable[[str], catalog.Row]]] = {
    "mechanisms": (catalog.mechanisms, catalog.more_of_mechanism),
    "constructions": (catalog.constructions, catalog.more_of_construction),
    "claims": (catalog.claims, catalog.more_of_claim),
    "engines": (catalog.engines, lambda name: {}),
    "published": (catalog.published, lambda name: {}),
}
"""What is listed of each kind, and what is added where one alone is asked for."""


def list_(
    what: Annotated[
        str,
        typer.Argument(help=f"{', '.join(WHAT[:-1])} or {WHAT[-1]}.", autocompletion=completion.lists),
    ],
    name: Annotated[
        str | None,
        typer.Argument(help="Show this one alone, and more of it.", autocompletion=completion.listed),
    ] = None,
    lattice: Annotated[
        bool, typer.Option("--lattice", help="With mechanisms: which is a special case of which.")
    ] = False,
    store: StoreUrl = HERE,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option(help="With one construction: its picture as a .svg, .png or .pdf file.")
    ] = None,
) -> None:
    """List what there is to name in other commands, or show one of it.

    \b
    Examples:
      separatrix list mechanisms
      separatrix list constructions spike
      separatrix list constructions spike --out spike.svg
    """
    from separatrix.core.parameters import UsageError, require_known

    if what not in WHAT and name is None and (home := _home(what)):
        raise UsageError(f"{what} is one of the {home}; write: separatrix list {home} {what}")
    require_known("list of", what, WHAT)
    if lattice and (what != "mechanisms" or name is not None):
        raise UsageError("the lattice is of all mechanisms; write: separatrix list mechanisms --lattice")
    if out is not None and (what != "constructions" or name is None):
        raise UsageError(
            "pictures are of one construction; write: separatrix list constructions spike --out spike.svg"
        )
    if lattice:
        _lattice(as_json)
    elif what == "plans":
        _plans(name, as_json)
    elif what == "sweeps":
        if name is not None:
            raise UsageError(
                f"sweeps are listed all at once; what one found: separatrix results --sweep {name}"
            )
        _sweeps(store, as_json)
    elif what == "tasks":
        if name is not None:
            from separatrix.training.tasks import REAL_TASKS, TASKS

            require_known("task", name, [*TASKS, *REAL_TASKS])
        rows = catalog.tasks(as_json, name)
        _print(rows if name is None else [{**rows[0], **catalog.more_of_task(name)}], name, as_json)
    else:
        every, more = ROWS[what]
        rows = every()
        if name is not None:
            name = name.partition(":")[0]
            found = {row["name"]: row for row in rows}
            require_known(what.removesuffix("s"), name, found)
            rows = [{**found[name], **more(name)}]
        if out is None:
            _print(rows, name, as_json)
        if what == "constructions" and name is not None and (out is not None or not as_json):
            _illustrate(name, out)


def _illustrate(name: str, out: Path | None) -> None:
    """Show the picture of a construction in characters, or write it."""
    if out is None:
        from separatrix.analysis.cards.illustration import illustrate
        from separatrix.cli import illustrated

        illustrated.show(illustrate(name))
    else:
        from separatrix.core.files.writing import require_writable, write_whole
        from separatrix.pages.drawing import PICTURES

        require_writable(out, PICTURES)
        from separatrix.pages import illustration

        write_whole(out, illustration.picture(name, out.suffix[1:]))


def _home(name: str) -> str:
    """The list in which something of that name stands; tasks are not looked through."""
    kind = name.partition(":")[0]
    return next((what for what, (rows, _) in ROWS.items() if any(row["name"] == kind for row in rows())), "")


def _print(rows: list[catalog.Row], name: str | None, as_json: bool) -> None:
    """Print every row, or the one that was asked for by its name."""
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
        value = [f"{name}={each}" for name, each in value.items()]
    return (" ".join(value) or "none") if isinstance(value, list) else str(value)


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


def _plans(name: str | None, as_json: bool) -> None:
    """Print every plan that comes with separatrix, or the text of one."""
    import tomllib

    from separatrix.sweeps.plan import load_plan
    from separatrix.sweeps.sweep import shipped_plans

    files = shipped_plans()
    if name is not None:
        from separatrix.core.parameters import require_known

        require_known("plan", name, files)
        files = {name: files[name]}
    about = {each: tomllib.loads(file.read_text())["description"] for each, file in files.items()}
    if as_json:
        counts = {each: load_plan(file).count for each, file in files.items()}
        rows = [{"name": each, "description": about[each], "cells": counts[each]} for each in files]
        print_json(rows if name is None else rows[0])
        return
    if name is not None:
        console().print(files[name].read_text().rstrip(), markup=False, soft_wrap=True)
        return
    table = new_table()
    for each, description in about.items():
        table.add_row(f"[bold]{escape(each)}[/]", escape(description))
    console().print(table)


def _sweeps(store: Secret, as_json: bool) -> None:
    """Print every sweep of a store."""
    from separatrix.sweeps.store import open_store
    from separatrix.sweeps.store.sweep_list import list_sweeps

    found, damage = list_sweeps(open_store(store))
    if as_json:
        names = ("id", "name", "started", "cells")
        print_json([{name: getattr(each, name) for name in names} for each in found])
    elif not found:
        console().print("no sweep is intact" if damage else "no sweep is stored")
    else:
        table = new_table("number", "name", "begun", "cells stored")
        for each in found:
            table.add_row(str(each.id), plain(each.name), plain(each.started), f"{each.cells:,}")
        console().print(table)
    warn_of(damage)
