"""The reference of JSON documents: a table of the keys of each kind of document, and the schemas as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from listed_pages import prose

from separatrix.schemas import DOCUMENTS, schema

FOLDER = "schemas"
"""The folder of the schemas in the built site."""
Schema = dict[str, Any]


def schemas() -> str:
    """Return a section for each kind of document with its keys; keys of nested objects are joined by dots."""
    return "\n".join(_document(name) for name in DOCUMENTS)


def write(folder: Path) -> None:
    """Write each schema as a file of the site."""
    (folder / FOLDER).mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (folder / FOLDER / f"{name}.json").write_text(json.dumps(schema(name), indent=2))


def _document(name: str) -> str:
    document_schema, document = schema(name), DOCUMENTS[name]
    rows = "\n".join(
        f"| `{key}` | {kind} | {text} |" for key, kind, text in _keys(document_schema, document_schema.get("$defs", {}))
    )
    about = f"{document.about[:1].upper()}{document.about[1:]}: `separatrix {document.command} --json`"
    file = f'<a href="../{FOLDER}/{name}.json">{name}.json</a>'
    return f"## {name}\n\n{prose(about)} ({file}).\n\n| key | type | description |\n|---|---|---|\n{rows}\n"


def _keys(node: Schema, definitions: dict[str, Schema], path: str = "", above: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield every key of a schema with its path, the name of its type, and its description."""
    for option in node.get("anyOf", ()):
        yield from _keys(option, definitions, path, above)
    if "$ref" in node:
        title = node["$ref"].rsplit("/", 1)[1]
        if title not in above:
            yield from _keys(definitions[title], definitions, path, (*above, title))
    if "items" in node:
        yield from _keys(node["items"], definitions, f"{path}[]", above)
    for name, value in node.get("properties", {}).items():
        inner = f"{path}.{name}".lstrip(".")
        optional = "" if name in node.get("required", ()) else ", optional"
        yield inner, _kind(value, definitions) + optional, prose(value.get("description", ""))
        yield from _keys(value, definitions, inner, above)


def _kind(node: Schema, definitions: dict[str, Schema]) -> str:
    if "$ref" in node:
        return _kind(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_kind(option, definitions) for option in node["anyOf"]))
    if "const" in node or "enum" in node:
        return " or ".join(f"`{json.dumps(value)}`" for value in node.get("enum", [node.get("const")]))
    kind = node.get("type", "any")
    if kind == "array":
        return f"list of {_kind(node['items'], definitions)}" if node.get("items") else "list"
    return str(kind)
