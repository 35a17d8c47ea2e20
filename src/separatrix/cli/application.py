"""All commands as one application."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from separatrix.cli import (
    assess,
    boundary,
    cards,
    check,
    choose,
    claim,
    data,
    explore,
    learn,
    lists,
    maps,
    readers,
    report,
    reproduce,
    results,
    scaling,
    schema,
    search,
    store,
    streams,
    sweep,
    verdict,
    worker,
)
from separatrix.errors import UsageError

app = typer.Typer(
    name="separatrix",
    help="What an attention mechanism can and cannot tell apart, with exact probabilities.",
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: tuple[Callable[..., None], ...] = (
    *(verdict.verdict, check.check, readers.readers, maps.map_, boundary.boundary, scaling.scaling),
    *(search.search, worker.worker, report.report, report.compare, sweep.sweep, results.results),
    *(
        learn.learn,
        reproduce.reproduce,
        claim.claim,
        choose.choose,
        explore.explore,
        assess.assess,
        cards.atlas,
        cards.bench,
        lists.list_,
        schema.schema,
    ),
)
for each in COMMANDS:
    app.command(each.__name__.strip("_"), context_settings={"allow_extra_args": each is cards.atlas})(each)
app.add_typer(store.commands, name="store")
app.add_typer(data.commands, name="data")


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """What an attention mechanism can and cannot tell apart."""
    if show:
        from separatrix import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


WRONG: Any = typer.BadParameter.__bases__[0]
"""What typer raises when a command is typed wrongly, wherever this release keeps it."""


COMPLETING = "_SEPARATRIX_COMPLETE"
"""Set by a shell that wants to know how a command could go on."""


def run(words: Sequence[str]) -> int:
    """The exit code of a command; what is wrong with how it was typed is a UsageError."""
    command = get_command(app)
    if COMPLETING in os.environ:
        command.main(list(words), "separatrix", complete_var=COMPLETING)
    try:
        with command.make_context("separatrix", list(words)) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except WRONG as error:
        raise UsageError(error.format_message()) from None
    finally:
        streams.give_stdout_back()
    return 0
