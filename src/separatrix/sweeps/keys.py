"""The keys of a table in a plan, and what is wrong with them in the user's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from separatrix.parameters import nearest
from separatrix.sweeps.complaints import Complaints
from separatrix.sweeps.lines import Path

Where = Callable[..., Path]
"""Where a key stands: in its table, or among the defaults of all tables."""


class Keys(BaseModel):
    """What a table may say. Numbers keep the digits they are written with."""

    model_config = ConfigDict(extra="forbid")
    name: str = ""
    construction: str | list[str] = []
    mechanisms: str | list[str | dict[str, Any]] = []
    parameters: dict[str, Any] = {}
    engine: str = "auto"
    delta: Any = "0.01"
    seeds: Any = [0]
    draws: Any = None
    confidence: Any = "0.95"
    dtype: str = "float64"
    until_decided: bool = False


def read_keys(table: Mapping[str, Any], number: int, complaints: Complaints) -> tuple[Keys, Where]:
    """The keys of a table; those that are wrong are complained of, and left at their defaults."""

    def path(*names: str) -> Path:
        own: Path = ("sweep", number, *names)
        return own if own in complaints.lines or names not in complaints.lines else names

    try:
        return Keys.model_validate(table), path
    except ValidationError as error:
        wrong = {str(each["loc"][0]): each for each in error.errors()}
    for name, each in wrong.items():
        complaints.add(path(name), complaint(each, list(Keys.model_fields)))
    return Keys.model_validate({name: value for name, value in table.items() if name not in wrong}), path


def complaint(error: Any, known: list[str]) -> str:
    """What pydantic found wrong with a key."""
    name = str(error["loc"][0])
    if error["type"] == "extra_forbidden":
        return f"there is no key {name}{nearest(name, known)}; there are: {', '.join(known)}"
    wanted = {
        "construction": "the name of a construction, or a list of them",
        "mechanisms": "a list of mechanisms",
        "parameters": "a table: write [sweep.parameters] and name = value below it",
        "sweep": "made of tables: write [[sweep]] and the keys below it",
        "until_decided": "true or false",
    }.get(name, "a text in quotes")
    return f"{name} = {error['input']!r} is not {wanted}"
