"""`choose`: which mechanisms still see what at a length in a number format, and what they keep for it."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import show


def choose(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE...",
            help="n, dtype=bfloat16, memory=2GiB, and the sizes of the model: layers=12 heads=12 kv_heads=12 "
            "width=64.",
        ),
    ] = None,
    must: Annotated[
        str, typer.Option(help="Constructions and tasks that have to be seen, with commas: spike,needle.")
    ] = "",
    mechanisms: Annotated[
        str | None,
        typer.Option(
            help="Which, with commas; one of each if none is named.", autocompletion=completion.mechanisms
        ),
    ] = None,
    literal: Annotated[
        bool,
        typer.Option("--literal", help="Also where every token is needed: up to minutes for each mechanism."),
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="Where runs of training are read from, for tasks.", metavar="URL")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write .html, .json, .csv, .parquet, .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which mechanisms still see what, at which cost.

    At a length and in a number format: what each mechanism sees of every construction that has that many
    tokens, what it keeps of a sequence in all layers, and how its operations grow. What keeps more than
    memory, or does not see what it must, is excluded and says by what; what nobody knows is said.

    \b
    Examples:
      separatrix choose n=131072 dtype=bfloat16 memory=2GiB
      separatrix choose n=131072 --must critical,averaging
    """
    from separatrix.analysis.choose import Budget
    from separatrix.analysis.choose import choose as run
    from separatrix.cli.choice_table import view
    from separatrix.core.errors import UsageError
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import read_words
    from separatrix.pages.choice import ENDINGS

    if out is not None:
        require_writable(out, ENDINGS)
    options = {name.removeprefix("as_") for name in signature(choose).parameters} - {"words"}
    given: dict[str, Any] = {**read_words(words or [], Budget.model_fields, options)}
    if strange := next((name for name in given if name not in Budget.model_fields), None):
        raise UsageError(Budget.unknown(strange))
    Budget.require_all(given)
    Budget.read(given)
    what = "what each mechanism sees; about 20 s for all, --literal minutes for each, tasks up to a minute"
    with announced("choose", what, as_json), counting(as_json) as tell:
        found = run(**given, must=must, mechanisms=mechanisms, literal=literal, store=store, tell=tell)
    if out is not None:
        found.save(out)
    show(found, as_json, lambda: view(found))
