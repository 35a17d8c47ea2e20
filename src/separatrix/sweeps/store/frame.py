"""Stored cells as a polars frame, one row a cell, one column for each parameter."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sqlalchemy import select

from separatrix.core.parameters import UsageError, nearest, split_mechanisms
from separatrix.core.parameters.model import require_known as require_named
from separatrix.sweeps.store.addresses import DEFAULT
from separatrix.sweeps.store.errors import DamageWarning
from separatrix.sweeps.store.filters import NUMBERS, WORDS, Filter, read_filter
from separatrix.sweeps.store.migrations import KINDS_KNOWN
from separatrix.sweeps.store.ranges import is_within
from separatrix.sweeps.store.schema import VERDICT, cells
from separatrix.sweeps.store.selection import selected
from separatrix.sweeps.store.store import Store
from separatrix.sweeps.store.urls import open_store

if TYPE_CHECKING:
    import polars as pl

MOST_LISTED = 20


def results(
    store: str | Store = DEFAULT,
    *,
    sweep: str | int | None = None,
    limit: int | None = None,
    kind: str = VERDICT,
    **conditions: object,
) -> pl.DataFrame:
    """Stored cells as a frame: `sx.results("sqlite:///results.db", mechanism="softmax", n="1e3:1e6")`.

    **Arguments:**

    - `store`: its URL, a file, or a store that is open.
    - `sweep`: only cells of this sweep, by name or number.
    - `limit`: at most so many rows.
    - `kind`: of which kind of work; conditions on another kind than verdicts can be on what it found, too.
    - `conditions`: columns, or parameters of the construction: a value, a list, or a range `"low:high"`.
      Exact values stand in the column `parameters`.
    """
    opened = open_store(store) if isinstance(store, str) else store
    number = None if sweep is None else opened.sweep_named(str(sweep))
    return frame(opened, read_filter(conditions, kind), number, limit)


def frame(
    store: Store, asked: Filter | None = None, sweep: int | None = None, limit: int | None = None
) -> pl.DataFrame:
    """The cells that `asked` describes, sorted by what was asked; a warning says what is damaged."""
    import polars as pl

    with selected(store, asked, sweep, limit) as found:
        whole = pl.concat(found.frames())
    if found.count == 0:
        require_known(store, asked or Filter())
    if found.scan.damage:
        warnings.warn(found.scan.damage.warning, DamageWarning, stacklevel=2)
    return whole


def require_known(store: Store, asked: Filter) -> None:
    """Where nothing was found, say so of a name or a condition that no cell has, or of a range of words."""
    if asked.kind != VERDICT:
        new = store.version >= KINDS_KNOWN
        kinds = [str(each) for (each,) in store.select(select(cells.c.kind).distinct())] if new else []
        require_named("kind of work in the store", str(asked.kind), sorted(kinds) or [str(asked.kind)])
        return
    for name in ("construction", "mechanism"):
        if name in asked.conditions:
            _require_stored(store, name, asked.conditions[name])
    for name, value in asked.parameters.items():
        stored = cells.c.parameters[name].as_string()
        found = store.select(select(stored).where(stored.is_not(None)).limit(1))
        if not found:
            _require_no_cells(store, name)
        elif ":" in value and not is_within(word := " ".join(str(found[0][0]).split()), "", ""):
            word = word[:40]
            raise UsageError(f"{name}={value} is a range, but {name} is a word, as in {name}={word}")


def _require_stored(store: Store, name: str, value: str) -> None:
    known = [str(each) for (each,) in store.select(select(cells.c[name]).distinct())]
    names = [*known, *dict.fromkeys(each.partition(":")[0] for each in known)]
    for strange in (
        split_mechanism for split_mechanism in split_mechanisms(value) if split_mechanism not in names
    ):
        if near := nearest(strange, names):
            listed = ", ".join(sorted(known)[:MOST_LISTED]) + (", …" if len(known) > MOST_LISTED else "")
            raise UsageError(f"no stored cell has {name} {strange}{near}; there are: {listed}")


def _require_no_cells(store: Store, name: str) -> None:
    kinds = store.select(select(cells.c.construction).distinct())
    names = [*WORDS, *NUMBERS]
    for (kind,) in kinds:
        one = store.select(select(cells.c.parameters).where(cells.c.construction == kind).limit(1))
        names += [
            str(parameter)
            for (parameters,) in one
            if isinstance(parameters, dict)
            for parameter in parameters
        ]
    if kinds:
        listed, near = ", ".join(dict.fromkeys(names)), nearest(name, names)
        raise UsageError(f"no stored cell has {name}{near}; conditions can be on: {listed}")
