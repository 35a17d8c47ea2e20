"""`choose`: the mechanisms that work at a length in a number format, and the memory that they need."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from separatrix.cli import completion, options
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import show


def choose(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME=VALUE...",
            help="n, dtype=bfloat16, memory=2GiB, and the sizes of the model: layers=12 heads=12 kv_heads=12 width=64.",
        ),
    ] = None,
    must: Annotated[str, Option(help="Comma-separated constructions and tasks that must be seen: spike,needle.")] = "",
    mechanisms: Annotated[
        str | None,
        Option(help="Comma-separated names (default: one of each class).", autocompletion=completion.mechanisms),
    ] = None,
    literal: Annotated[
        bool, Option("--literal", help="Also compute cells that need every token: minutes per mechanism.")
    ] = False,
    store: Annotated[str | None, Option(help="Store with training runs, for tasks.", metavar="URL")] = None,
    out: Annotated[Path | None, Option(help="Write .html, .json, .csv, .parquet, .png, .svg or .pdf.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Which mechanisms still see what, at which cost.

    Shows, for a length and a number format, the result of each mechanism on every construction that has that
    many tokens, the memory that all layers keep of a sequence, and the growth of its operations. Mechanisms
    over the memory budget, or blind to a required question, are excluded with the reason. Unknown results are
    marked as unknown.

    \b
    Examples:
      separatrix choose n=131072 dtype=bfloat16 memory=2GiB
      separatrix choose n=131072 --must critical,averaging
    """
    from separatrix.analysis.choose import Budget
    from separatrix.analysis.choose import choose as compute
    from separatrix.cli.choice_table import print_choice
    from separatrix.core.errors import UsageError
    from separatrix.core.parameters import read_words

    options.require_output(out, "choice")
    option_names = {name.removeprefix("as_") for name in signature(choose).parameters} - {"words"}
    values: dict[str, Any] = {**read_words(words or [], Budget.model_fields, option_names)}
    if unknown_name := next((name for name in values if name not in Budget.model_fields), None):
        raise UsageError(Budget.describe_unknown(unknown_name))
    # Both report a missing or wrong size before the command announces its work.
    Budget.require_all(values)
    Budget.read(values)
    work = "about 20 s; tasks take up to a minute, --literal minutes a mechanism"
    with announced("choose", work, as_json), counting(as_json) as tell:
        choice = compute(**values, must=must, mechanisms=mechanisms, literal=literal, store=store, tell=tell)
    show(choice, as_json, lambda: print_choice(choice), out)
