"""Shell completion of names; imports only the modules that define them."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def constructions(incomplete: str) -> list[str]:
    """Complete a construction."""
    from separatrix.constructions import CONSTRUCTIONS

    return _starting_with(CONSTRUCTIONS, incomplete)


def mechanism(incomplete: str) -> list[str]:
    """Complete a mechanism."""
    from separatrix.mechanisms import MECHANISMS

    return _starting_with(MECHANISMS, incomplete)


def mechanisms(incomplete: str) -> list[str]:
    """Complete the last of several comma-separated mechanisms.

    >>> mechanisms("softmax,lin")
    ['softmax,linear', 'softmax,linformer']
    """
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in mechanism(last)]


def tasks(incomplete: str) -> list[str]:
    """Complete a task."""
    from separatrix.training.tasks import REAL_TASKS, TASKS

    return _starting_with([*TASKS, *REAL_TASKS], incomplete)


def claims(incomplete: str) -> list[str]:
    """Complete a claim."""
    from separatrix.claims import CLAIMS

    return _starting_with((entry.name for entry in CLAIMS), incomplete)


def engines(incomplete: str) -> list[str]:
    """Complete an engine."""
    from separatrix.exact.engines import ENGINES

    return _starting_with(ENGINES, incomplete)


def published(incomplete: str) -> list[str]:
    """Complete the name of a published number."""
    from separatrix.analysis.evidence.published import PUBLISHED

    return _starting_with((entry.name for entry in PUBLISHED), incomplete)


def plans(incomplete: str) -> list[str]:
    """Complete the name of a shipped plan."""
    from separatrix.sweeps.sweep import shipped_plans

    return _starting_with(shipped_plans(), incomplete)


def schemas(incomplete: str) -> list[str]:
    """Complete a kind of document."""
    from separatrix.schemas import DOCUMENTS

    return _starting_with(DOCUMENTS, incomplete)


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
    return _starting_with([*LISTS, "sweeps"], incomplete)


def listed(context: typer.Context, incomplete: str) -> list[str]:
    """Complete an entry of the category that `list` was given."""
    names = LISTS.get(str(context.params.get("kind")))
    return [] if names is None else names(incomplete)


def _starting_with(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
