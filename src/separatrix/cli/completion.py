"""Shell completion of names; imports only the modules that define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from typer import Context


def _names_in(module: str, *collections: str, read_names: Callable[[Any], Iterable[str]] = list) -> Any:
    """Return a function that completes the names in collections of a module."""

    def complete(incomplete: str) -> list[str]:
        # Imported on use: a shell waits for the answer, and an import of everything takes seconds.
        source = import_module(f"separatrix.{module}")
        names = (name for collection in collections for name in read_names(getattr(source, collection)))
        return [name for name in names if name.startswith(incomplete)]

    return complete


def _entry_names(entries: Iterable[Any]) -> Iterable[str]:
    return (entry.name for entry in entries)


constructions = _names_in("constructions", "CONSTRUCTIONS")
mechanism = _names_in("mechanisms", "MECHANISMS")
tasks = _names_in("training.tasks", "TASKS", "REAL_TASKS")
claims = _names_in("claims", "CLAIMS", read_names=_entry_names)
engines = _names_in("exact.engines", "ENGINES")
published = _names_in("analysis.evidence.published", "PUBLISHED", read_names=_entry_names)
plans = _names_in("sweeps.sweep", "shipped_plans", read_names=lambda list_plans: list_plans())
schemas = _names_in("schemas", "DOCUMENTS")


def mechanisms(incomplete: str) -> list[str]:
    """Complete the last of several comma-separated mechanisms.

    >>> mechanisms("softmax,lin")
    ['softmax,linear', 'softmax,linformer']
    """
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in mechanism(last)]


LISTS = {
    "mechanisms": mechanism,
    "constructions": constructions,
    "claims": claims,
    "tasks": tasks,
    "engines": engines,
    "published": published,
    "plans": plans,
}


def lists(incomplete: str) -> list[str]:
    """Complete a category of `list`."""
    return [name for name in (*LISTS, "sweeps") if name.startswith(incomplete)]


def list_entries(context: Context, incomplete: str) -> list[str]:
    """Complete an entry of the category that `list` was given."""
    names = LISTS.get(str(context.params.get("kind")))
    return [] if names is None else names(incomplete)
