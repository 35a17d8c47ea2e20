"""What a shell is offered when a name is half typed; nothing is loaded but what has the names."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def constructions(incomplete: str) -> list[str]:
    """Constructions that begin so."""
    from separatrix.constructions import CONSTRUCTIONS

    return _begun(CONSTRUCTIONS, incomplete)


def mechanism(incomplete: str) -> list[str]:
    """Mechanisms that begin so."""
    from separatrix.mechanisms import MECHANISMS

    return _begun(MECHANISMS, incomplete)


def mechanisms(incomplete: str) -> list[str]:
    """Several mechanisms with commas between them: the last is completed.

    >>> mechanisms("softmax,lin")
    ['softmax,linear', 'softmax,linformer']
    """
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in mechanism(last)]


def tasks(incomplete: str) -> list[str]:
    """Tasks that begin so."""
    from separatrix.training.tasks import REAL_TASKS, TASKS

    return _begun([*TASKS, *REAL_TASKS], incomplete)


def claims(incomplete: str) -> list[str]:
    """Claims that begin so."""
    from separatrix.claims import CLAIMS

    return _begun((each.name for each in CLAIMS), incomplete)


def engines(incomplete: str) -> list[str]:
    """Engines that begin so."""
    from separatrix.exact.engines import ENGINES

    return _begun(ENGINES, incomplete)


def published(incomplete: str) -> list[str]:
    """Published numbers that begin so."""
    from separatrix.analysis.evidence.published import PUBLISHED

    return _begun((each.name for each in PUBLISHED), incomplete)


def plans(incomplete: str) -> list[str]:
    """Plans that come with separatrix and begin so."""
    from separatrix.sweeps.sweep import shipped_plans

    return _begun(shipped_plans(), incomplete)


def schemas(incomplete: str) -> list[str]:
    """Kinds of documents that begin so."""
    from separatrix.schemas import DOCUMENTS

    return _begun(DOCUMENTS, incomplete)


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
    """What can be listed."""
    return _begun([*LISTS, "sweeps"], incomplete)


def listed(context: typer.Context, incomplete: str) -> list[str]:
    """One of what is listed."""
    names = LISTS.get(str(context.params.get("what")))
    return [] if names is None else names(incomplete)


def _begun(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
