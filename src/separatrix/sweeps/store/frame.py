"""Stored cells as a polars frame: one row for each cell, one column for each parameter."""

from __future__ import annotations

import warnings

from sqlalchemy import select

from separatrix.core.lazy import pl
from separatrix.core.parameters import UsageError, nearest, split_mechanisms
from separatrix.core.parameters.model import require_known as require_name
from separatrix.sweeps.store.addresses import DEFAULT
from separatrix.sweeps.store.errors import DamageWarning
from separatrix.sweeps.store.filters import FILTER_COLUMNS, Filter, is_in_range, read_filter
from separatrix.sweeps.store.opening import open_store
from separatrix.sweeps.store.schema import VERDICT, cells
from separatrix.sweeps.store.selection import select_cells
from separatrix.sweeps.store.store import Store
from separatrix.sweeps.store.sweep_list import find_sweep

MAX_LISTED = 20


def results(
    store: str | Store = DEFAULT,
    *,
    sweep: str | int | None = None,
    limit: int | None = None,
    kind: str = VERDICT,
    **conditions: object,
) -> pl.DataFrame:
    """Return stored cells as a frame: `sx.results("sqlite:///results.db", mechanism="softmax", n="1e3:1e6")`.

    **Arguments:**

    - `store`: the URL, a file, or an open store.
    - `sweep`: only cells of this sweep, by name or number.
    - `limit`: the maximum number of rows.
    - `kind`: the kind of work; for kinds other than verdicts, conditions can also be on findings.
    - `conditions`: columns, or parameters of the construction: a value, a list, or a range `"low:high"`.
      The column `parameters` has the exact values.
    """
    source = open_store(store) if isinstance(store, str) else store
    number = None if sweep is None else find_sweep(source, str(sweep))
    return frame(source, read_filter(conditions, kind), number, limit)


def frame(
    store: Store, wanted: Filter | None = None, sweep: int | None = None, limit: int | None = None
) -> pl.DataFrame:
    """Return the cells that a filter describes, sorted by what was requested; warn of damage."""
    with select_cells(store, wanted, sweep, limit) as selection:
        table = pl.concat(selection.frames())
    if selection.count == 0:
        require_known(store, wanted or Filter())
    if selection.damage:
        warnings.warn(selection.damage.warning, DamageWarning, stacklevel=2)
    return table


def require_known(store: Store, wanted: Filter) -> None:
    """Explain why a filter matches no cell: an unknown name or condition, or a range of words."""
    if wanted.kind != VERDICT:
        kinds = sorted(_list_values(store, "kind")) or [str(wanted.kind)]
        require_name("kind of work in the store", str(wanted.kind), kinds)
        return
    for name in ("construction", "mechanism"):
        if name in wanted.conditions:
            _require_stored(store, name, wanted.conditions[name])
    for name, value in wanted.parameters.items():
        stored_value = cells.c.parameters[name].as_string()
        rows = store.select(select(stored_value).where(stored_value.is_not(None)).limit(1))
        if not rows:
            _raise_unknown_parameter(store, name)
        elif ":" in value and not is_in_range(word := " ".join(str(rows[0][0]).split()), "", ""):
            raise UsageError(f"{name}={value} is a range, but {name} is a word, as in {name}={word[:40]}")


def _list_values(store: Store, column: str) -> list[str]:
    return [str(value) for (value,) in store.select(select(cells.c[column]).distinct())]


def _require_stored(store: Store, name: str, value: str) -> None:
    stored_names = _list_values(store, name)
    names = [*stored_names, *dict.fromkeys(text.partition(":")[0] for text in stored_names)]
    for word in split_mechanisms(value):
        if word not in names and (suggestion := nearest(word, names)):
            name_list = ", ".join(sorted(stored_names)[:MAX_LISTED]) + (", …" if len(stored_names) > MAX_LISTED else "")
            raise UsageError(f"no stored cell has {name} {word}{suggestion}; there are: {name_list}")


def _raise_unknown_parameter(store: Store, name: str) -> None:
    names = dict.fromkeys(FILTER_COLUMNS)
    constructions = _list_values(store, "construction")
    for construction in constructions:
        first = select(cells.c.parameters).where(cells.c.construction == construction).limit(1)
        for (point,) in store.select(first):
            names |= dict.fromkeys(map(str, point)) if isinstance(point, dict) else {}
    if constructions:
        suggestion, name_list = nearest(name, list(names)), ", ".join(names)
        raise UsageError(f"no stored cell has {name}{suggestion}; conditions can be on: {name_list}")
