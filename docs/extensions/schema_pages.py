"""The JSON that commands print: every key of every kind of document, and the schemas as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listed_pages import prose

from separatrix.schemas import DOCUMENTS, schema

FOLDER = "schemas"
"""Below the built site."""
WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
Schema = dict[str, Any]


def schemas() -> str:
    """A section for each kind of document, with its keys; those within another are written with a dot."""
    return "\n".join(_document(name) for name in DOCUMENTS)


def write(folder: Path) -> None:
    """Each schema as a file of the site."""
    (folder / FOLDER).mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (folder / FOLDER / f"{name}.json").write_text(json.dumps(schema(name), indent=2))


def _document(name: str) -> str:
    whole, each = schema(name), DOCUMENTS[name]
    rows = "\n".join(
        f"| `{key}` | {kind} | {says} |" for key, kind, says in _keys(whole, whole.get("$defs", {}))
    )
    about = f"{each.about[:1].upper()}{each.about[1:]}: `separatrix {each.command} --json`"
    file = f'<a href="../{FOLDER}/{name}.json">{name}.json</a>'
    return f"## {name}\n\n{prose(about)} ({file}).\n\n| key | kind | |\n|---|---|---|\n{rows}\n"


def _keys(
    given: Schema, known: dict[str, Schema], path: str = "", above: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Every key below a schema: its path, its kind in words, and what is said of it."""
    for option in given.get("anyOf", ()):
        yield from _keys(option, known, path, above)
    if "$ref" in given:
        title = given["$ref"].rsplit("/", 1)[1]
        if title not in above:
            yield from _keys(known[title], known, path, (*above, title))
    if "items" in given:
        yield from _keys(given["items"], known, f"{path}[]", above)
    for name, value in given.get("properties", {}).items():
        inner = f"{path}.{name}".lstrip(".")
        may_be_missing = "" if name in given.get("required", ()) else ", if there is one"
        yield inner, _kind(value, known) + may_be_missing, prose(value.get("description", ""))
        yield from _keys(value, known, inner, above)


def _kind(given: Schema, known: dict[str, Schema]) -> str:
    if "$ref" in given:
        return _kind(known[given["$ref"].rsplit("/", 1)[1]], known)
    if "anyOf" in given:
        return " or ".join(dict.fromkeys(_kind(each, known) for each in given["anyOf"]))
    if "const" in given or "enum" in given:
        return " or ".join(f"`{json.dumps(each)}`" for each in given.get("enum", [given.get("const")]))
    kind = WORDS.get(given.get("type", "anything"), given.get("type", "anything"))
    return f"list of {_kind(given['items'], known)}" if given.get("items") else kind
