"""`schema`: JSON Schema of the output of --json."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.terminal import console, new_table, print_json


def schema(
    name: Annotated[
        str | None, Argument(help="Print the schema of this kind of document.", autocompletion=completion.schemas)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of the output of --json.

    Without a name, list the kinds of documents and the commands that print them.

    Example: separatrix schema verdict
    """
    from separatrix.core.parameters import require_known
    from separatrix.schemas import DOCUMENTS
    from separatrix.schemas import schema as schema_of

    if name is not None:
        require_known("schema", name, DOCUMENTS)
        print_json(schema_of(name))
    elif as_json:
        print_json([{"name": name, "command": kind.command, "about": kind.about} for name, kind in DOCUMENTS.items()])
    else:
        table = new_table("name", "printed by", "what", gap=1)
        for kind, document in DOCUMENTS.items():
            table.add_row(f"[bold]{kind}[/]", f"separatrix {document.command}", document.about)
        console().print(table)
